"""A job's usage: measured before told, with its source."""

from typing import Any

import pytest

from support.extender.cluster import job
from synergy_core.model.usage import Usage
from synergy_extender.colocation.usages import as_told, from_told, usages_of

TOLD = {"gpuType": "V100", "compute": 0.9, "bandwidth": 0.5, "memory": "4Gi", "model": "Net"}
MEASURED = {"gpuType": "V100", "compute": 0.4, "bandwidth": 0.2, "memoryBytes": 7}
COUNTED = {**MEASURED, "source": "DCGM", "utilization": 0.8, "memoryUtilization": 0.3, "occupancy": 0.1}


def usage(told: dict[str, Any] | None, measured: dict[str, Any] | None) -> Usage:
    spec = {"sharing": {"allowed": True, "usage": [told] if told else []}}
    profile = {"state": "Complete", "usage": [measured] if measured else []}
    return usages_of(job(spec=spec, status={"phase": "Queued", "profile": profile}))["V100"]


@pytest.mark.parametrize(
    ("told", "measured", "known"),
    [
        (TOLD, None, Usage(compute=0.9, bandwidth=0.5, memory_bytes=1 << 32, model="Net")),
        (TOLD, MEASURED, Usage(compute=0.4, bandwidth=0.2, memory_bytes=1 << 32, model="Net")),
        (
            {**TOLD, "source": "Counters", "utilization": 0.95},
            None,
            Usage(compute=0.9, bandwidth=0.5, memory_bytes=1 << 32, model="Net", counters=True, utilization=0.95),
        ),
        (
            TOLD,
            COUNTED,
            Usage(
                compute=0.4, bandwidth=0.2, memory_bytes=1 << 32, model="Net", counters=True, utilization=0.8,
                memory_utilization=0.3,
            ),
        ),
    ],
)  # fmt: skip
def test_what_was_measured_replaces_what_was_told_with_its_source(
    told: dict[str, Any], measured: dict[str, Any] | None, known: Usage
) -> None:
    found = usage(told, measured)
    assert found == known
    assert from_told(as_told(found, "V100")) == found
