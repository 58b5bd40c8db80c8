"""Which jobs will miss their deadlines, and why: a closed list."""

from enum import StrEnum
from typing import Final

from synergy_core.model.snapshot import Job


class LateReason(StrEnum):
    """Why a job will be late."""

    PAST = "DeadlinePast"
    TOO_TIGHT = "DeadlineTooTight"
    COLLIDE = "DeadlinesCollide"


LATE_MESSAGES: Final[dict[LateReason, str]] = {
    LateReason.PAST: "its deadline is in the past. It is planned as soon as that costs no other job its deadline; a "
    "later deadline says what is still wanted.",
    LateReason.TOO_TIGHT: "what it has left to train takes longer than is left until its deadline, even on its "
    "fastest GPU type all the time. It is planned as soon as that costs no other job its deadline; give it more time, "
    "more GPUs or fewer steps.",
    LateReason.COLLIDE: "the cluster cannot keep the deadlines of all jobs, and this one is among those that fall "
    "short. Give it or others more time, or add GPUs.",
}


def late_alone(job: Job, now: float, speed: float) -> LateReason | None:
    """Why a job misses its deadline whatever others do; `speed`: steps per second at its fastest, 0 if not known."""
    if job.deadline_s is None or job.purpose == "profile":
        return None
    left = job.deadline_s - now
    if left <= 0.0:
        return LateReason.PAST
    speed = max(speed, job.running.steps_per_s if job.running is not None else 0.0)
    needed = job.left_s(speed)
    return LateReason.TOO_TIGHT if needed is not None and needed > left else None
