"""The queues of `2d-las` and `2d-gittins` (Tiresias, section 3.2.3)."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from synergy_core.model.config.policy_option import Flag, PolicyOption, SpecField
from synergy_core.model.snapshot import FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityQueues:
    """The queues of `2d-las` and `2d-gittins` (Tiresias, section 3.2.3)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    thresholds_gpu_s: Annotated[
        tuple[Annotated[float, Field(gt=0)], ...],
        PolicyOption(
            flag=Flag(
                name="--queue-thresholds",
                metavar="A,B,..",
                help="2d-las and 2d-gittins: GPU-seconds at which a job falls to the next queue; `none`: no queues.",
            ),
            spec=SpecField(
                name="queues.thresholds_gpu_seconds",
                description="Attained service, GPUs times seconds, at which a job falls to the next queue, ascending. "
                "An empty list: no queues, priorities change all the time.",
            ),
        ),
    ] = (3600.0, 36000.0)
    """Attained service, GPU-seconds, at which a job falls to the next queue, ascending: K - 1 of them for K queues.
    None: priorities are not discretised."""
    promote_knob: Annotated[
        Annotated[float, Field(gt=0)] | None,
        PolicyOption(
            flag=Flag(
                name="--promote-knob",
                metavar="X",
                help="2d-las and 2d-gittins: a job that waited X times as long as it ran goes to the head of the "
                "first queue.",
            ),
            spec=SpecField(
                name="queues.promote_knob",
                description="A job goes to the head of the first queue once it has waited so many times as long as it"
                " has "
                "run, or as the first queue would let it run if that is longer. By default none does.",
                above=0,
                at_most=1e6,
            ),
        ),
    ] = None
    """A job goes to the head of the first queue once it has waited so many times as long as it has run, or as the first
    queue would let it run if that is longer; null: none does."""
    service_gpu_s: Annotated[
        tuple[Annotated[float, Field(gt=0)], ...],
        PolicyOption(
            flag=Flag(
                name="--service-distribution",
                metavar="FILE",
                help="2d-gittins: whole service of finished jobs, GPU-seconds, one number a line.",
            ),
            unset="a cluster knows its own finished jobs",
        ),
    ] = ()
    """Whole service of finished jobs, GPU-seconds: the distribution that `2d-gittins` uses."""

    def __post_init__(self) -> None:
        for name, values in (("thresholds_gpu_s", self.thresholds_gpu_s), ("service_gpu_s", self.service_gpu_s)):
            for index, value in enumerate(values):
                if not 0.0 < value < inf:
                    raise FieldError(f"{name}[{index}]", f"must be above 0 and finite, is {value}")
        for index, (low, high) in enumerate(pairwise(self.thresholds_gpu_s)):
            if high <= low:
                raise FieldError(
                    f"thresholds_gpu_s[{index + 1}]", f"{high:g} is not above {low:g}; sort the thresholds"
                )
        if self.promote_knob is not None and not self.promote_knob > 0.0:
            raise FieldError("promote_knob", f"must be above 0, is {self.promote_knob}; leave it out to promote no job")
