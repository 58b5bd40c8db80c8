"""What happens to the jobs on a node that must be empty by some moment."""

from collections.abc import Iterable
from dataclasses import dataclass

from synergy_view.seen import SeenJob
from synergy_view.top import nodes_held

NEVER = "does not leave: spec.preemption is Never"
PROFILE = "ends by itself: it is a profile run"
LEAVING = "leaves now"
LATE = "leaves at the next end of a round, after the time asked for"
IN_TIME = "leaves at an end of a round before, with a checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRow:
    """A job that holds GPUs of the node."""

    job: str
    gpus: int
    """Those on this node."""
    leaves: str
    stays: bool = False
    """No plan moves it: someone has to end it, or wait."""


def drain_rows(jobs: Iterable[SeenJob], node: str, *, empty_by_s: float, now: float, round_s: float) -> list[DrainRow]:
    """The jobs there, by name. Times are seconds since the epoch."""
    rows = [
        DrainRow(
            job=job.full_name,
            gpus=_gpus_on(job, node),
            leaves=_leaves(job, late=empty_by_s < now + round_s),
            stays=job.spec.preemption == "Never" and not _is_leaving(job),
        )
        for job in jobs
        if node in nodes_held(job)
    ]
    return sorted(rows, key=lambda row: row.job)


def _leaves(job: SeenJob, *, late: bool) -> str:
    allocation = job.status.allocation
    if _is_leaving(job):
        return LEAVING
    if allocation is not None and allocation.purpose == "Profile":
        return PROFILE
    if job.spec.preemption == "Never":
        return NEVER
    return LATE if late else IN_TIME


def _is_leaving(job: SeenJob) -> bool:
    allocation = job.status.allocation
    return allocation is not None and allocation.state == "Revoked"


def _gpus_on(job: SeenJob, node: str) -> int:
    allocation = job.status.allocation
    workers = allocation.workers if allocation is not None else []
    return sum(share.gpus for share in workers if share.node == node)
