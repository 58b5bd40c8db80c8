"""What the jobs of one class are bound by, and how fast they are, whatever nodes there are."""

from collections.abc import Mapping
from dataclasses import dataclass

from synergy_core.model.resources import Further, Vector, maximum, minimum, split_up
from synergy_core.model.snapshot import Job, Profile
from synergy_core.throughput.estimates import NO_SPEEDS


@dataclass(frozen=True, slots=True, eq=False)
class ClassBounds:
    """All amounts are integers per GPU. A job that is split over nodes thus has exactly the same CPU and memory beside
    each of its GPUs (Synergy, section 4.2), and never more in total than was counted."""

    gpus: int
    is_profile_run: bool
    low: Vector
    """Least of each resource."""
    high: tuple[int | None, ...]
    """Most of each resource; None: no bound."""
    profiles: Mapping[str, Profile]
    speeds: Mapping[str, float]
    """At the GPU-proportional share, on GPU types without a matrix (`estimates`)."""
    tolerance: float
    """The part of the best speed that the demand vector may give up (Synergy, section 3.2)."""

    def capped(self, per_gpu: Vector) -> Vector:
        """`per_gpu` within the upper bounds."""
        return _capped(per_gpu, self.high)


def bounds_of(job: Job, further: Further, tolerance: float, speeds: Mapping[str, float] = NO_SPEEDS) -> ClassBounds:
    """The bounds of all jobs of the class of `job`."""
    most = maximum(job, further)
    high = tuple(None if bound is None else max(1, bound // job.gpus) for bound in most)
    low = _capped(split_up(minimum(job, further), job.gpus), high)
    return ClassBounds(job.gpus, job.purpose == "profile", low, high, job.profiles, speeds, tolerance)


def _capped(per_gpu: Vector, high: tuple[int | None, ...]) -> Vector:
    if not any(high):
        return per_gpu
    return tuple(e if most is None else min(e, most) for e, most in zip(per_gpu, high, strict=True))
