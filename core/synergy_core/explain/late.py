"""The plan's entries for the jobs that will miss their deadlines."""

from collections.abc import Callable, Collection, Iterable

from synergy_core.model.answer import Late
from synergy_core.model.deadlines import LATE_MESSAGES, LateReason, late_alone
from synergy_core.model.snapshot import Job


def late_jobs(
    jobs: Iterable[Job], now: float, speed: Callable[[Job], float], colliding: Collection[str]
) -> tuple[Late, ...]:
    """All late jobs by name; `colliding` are those that the policy found to be."""
    found: list[Late] = []
    for job in jobs:
        reason = None if job.deadline_s is None else late_alone(job, now, speed(job))
        if reason is None and job.name in colliding:
            reason = LateReason.COLLIDE
        if reason is not None:
            found.append(Late(job=job.name, reason=reason.value, message=LATE_MESSAGES[reason]))
    return tuple(sorted(found, key=lambda late: late.job))
