"""Progress that another writer broke is written anew, by the leader alone."""

from typing import Any, cast

import pytest

from support.extender.cluster import NOW, job
from synergy_api.parts.progress import Progress
from synergy_api.timestamps import format_time
from synergy_extender.cluster.views import JobView
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.metrics import Metrics
from synergy_extender.writing.progress_repair import ProgressRepair
from synergy_kube import ApiError, Conflict

_LEFT = {"run": 1, "outcome": "Yielded", "step": 40}
_SOUND: dict[str, Any] = {"run": 1, "steps": 40, "checkpointSteps": 40, "updatedAt": format_time(NOW)}


class Written:
    """Keeps what is written. The first write raises `error`, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.steps: list[tuple[str, int]] = []
        self._error = error

    async def apply(self, job: JobView, progress: Progress) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
        self.steps.append((job.key.name, progress.steps))


def _job(name: str, **progress: Any) -> JobView:
    service = {"run": 1, "endedRun": 1, "last": _LEFT}
    return job(name, status={"phase": "Queued", "service": service, "progress": {**_SOUND, **progress}})


def _repair(writer: Written, *, leads: bool = True) -> ProgressRepair:
    return ProgressRepair(cast(ProgressWriter, writer), Metrics(), lambda: leads)


async def test_only_what_is_broken_is_written() -> None:
    writer = Written()
    await _repair(writer).repair([_job("sound"), _job("broken", steps=3)])
    assert writer.steps == [("broken", 40)]


async def test_a_replica_that_leads_no_more_writes_nothing() -> None:
    writer = Written()
    await _repair(writer, leads=False).repair([_job("broken", steps=3)])
    assert writer.steps == []


@pytest.mark.parametrize("error", [Conflict(409, "Conflict", "changed"), ApiError(422, "Invalid", "too large")])
async def test_a_refused_write_is_tried_again_and_keeps_no_other(error: ApiError) -> None:
    writer, jobs = Written(error), [_job("a", steps=3), _job("b", steps=3)]
    repair = _repair(writer)
    await repair.repair(jobs)
    assert writer.steps == [("b", 40)]
    await repair.repair(jobs[:1])
    assert writer.steps == [("b", 40), ("a", 40)]
