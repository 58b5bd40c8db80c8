"""Speeds that have a limit on a client's threads in them, as references for other jobs.

A job and its reference are assumed to lose the same to the limit, except for what is known of both jobs' usage: what
the job does with the CPU of its share is one bound, its part of the GPU's threads the other.
"""

from dataclasses import dataclass

from synergy_core.model.snapshot import Job
from synergy_core.model.usage import Usage
from synergy_core.throughput.threads import ceiling

_HELD_UP = 0.95
"""A job that has this part of its best speed at its share is limited by the GPU there, not by its CPU."""


@dataclass(frozen=True, slots=True)
class Limited:
    """What is known of a job on a GPU type where it was seen as a client that may use `percent` of the threads."""

    usage: Usage | None
    """None if it is not known. What the limit costs the job is then not known either."""
    percent: int
    at_share: float
    """Steps per second at its GPU-proportional share on a whole GPU."""
    best: float
    """The same with all the CPU and memory that it can use."""

    @property
    def most(self) -> float:
        """The most that the limit leaves it, whatever its CPU and memory."""
        return ceiling(self.usage, self.percent) * self.best

    def without(self, steps_per_s: float, usage: Usage) -> float:
        """The speed on a whole GPU of a job of this usage that was taken to have `steps_per_s` with the limit, being
        like this one: what `threads.kept_alone` then leaves of it is what it has with the limit."""
        keeps = ceiling(usage, self.percent)
        if self.usage is None:
            return steps_per_s / keeps
        own, other = (min(self.at_share, part * self.best) for part in (keeps, ceiling(self.usage, self.percent)))
        return steps_per_s * own / other / keeps


def by_matrix(job: Job, gpu_type: str, at_share: float, best: float, percent: int) -> Limited | None:
    """By the job's matrix, which has these speeds, on a type whose clients have up to `percent` of the threads; None
    where no limit is in what is known of it."""
    usage, measured_with = job.usage.get(gpu_type), job.profiles[gpu_type].client_thread_percent
    percent = measured_with if usage is None else min(measured_with, percent)
    if percent >= 100:
        return None
    kept = ceiling(usage, measured_with)
    return Limited(usage, percent, at_share / kept if at_share >= _HELD_UP * best else at_share, best / kept)


def as_it_ran(job: Job, gpu_type: str, percent: int) -> Limited | None:
    """By what was measured while it ran there; None where nothing was, or no limit is in it."""
    if percent >= 100 or gpu_type in job.profiles or gpu_type not in job.measured:
        return None
    usage = job.usage.get(gpu_type)
    whole = job.measured[gpu_type] / ceiling(usage, percent)
    return Limited(usage, percent, whole, whole)
