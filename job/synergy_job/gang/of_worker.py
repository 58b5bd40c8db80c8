"""The part of a worker in its gang."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from synergy_job.gang.base import Alone, Watchdog
from synergy_job.gang.leader import Leader
from synergy_job.gang.member import GangMember

if TYPE_CHECKING:
    from synergy_job.departure import Departure
    from synergy_job.environment import Worker
    from synergy_job.gang.base import Gang
    from synergy_job.length import Length


def gang_of(
    worker: Worker, departure: Departure, watchdog: Watchdog, length: Length, step_seconds: Callable[[], float]
) -> Gang:
    """The gang as this worker sees it. `step_seconds` gives the mean duration of a step so far."""
    if worker.world_size == 1:
        return Alone(departure, length, tuple(dict.fromkeys(worker.gpu_uuids)))
    if worker.rank == 0:
        return Leader(worker, departure, watchdog, length, step_seconds)
    return GangMember(worker, departure, watchdog, length)
