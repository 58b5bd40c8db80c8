"""What a profile run saw its workers send stands for what the job does not tell of its model."""

from typing import Any

import pytest

from support.extender.cluster import NOW, cluster, job, node_object
from synergy_core.model import snapshot as core
from synergy_extender.snapshot.snapshot import build_snapshot

SEEN = {"source": "NCCL", "workers": 2, "bytesPerStep": 900, "modelBytes": 900}
MESSAGES = {"messageBytes": 900, "largestMessageBytes": 300}
TOLD = {"largestTensorBytes": 50, "modelBytes": 100}


@pytest.mark.parametrize(
    ("traffic", "progress", "expected"),
    [
        (None, {}, (None, core.UNKNOWN_SKEW, None)),
        (SEEN, {}, (900, core.UNKNOWN_SKEW, None)),
        ({**SEEN, "overlap": 0.25}, {}, (900, core.UNKNOWN_SKEW, 0.25)),
        ({**SEEN, **MESSAGES}, {}, (900, 1 / 3, None)),
        (SEEN, {"sentBytesPerStep": 600, "worldSize": 4}, (400, core.UNKNOWN_SKEW, None)),
        (None, {"sentBytesPerStep": 6123, "worldSize": 4}, (4100, core.UNKNOWN_SKEW, None)),
        (None, {"sentBytesPerStep": 6150, "worldSize": 4}, (4100, core.UNKNOWN_SKEW, None)),
        (None, {"sentBytesPerStep": 600, "worldSize": 4, **TOLD}, (100, 0.5, None)),
        ({**SEEN, **MESSAGES, "overlap": 0.0}, TOLD, (100, 0.5, 0.0)),
    ],
)
def test_what_was_seen_stands_for_what_is_not_told(
    traffic: dict[str, Any] | None, progress: dict[str, Any], expected: tuple[int | None, float, float | None]
) -> None:
    status = {"phase": "Queued", "profile": {"state": "Complete", "traffic": traffic}, "progress": progress}
    state = cluster([node_object("n1")], [job(gpus=2, status=status)])
    (found,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert (found.model_bytes, found.skew, found.overlap) == expected
