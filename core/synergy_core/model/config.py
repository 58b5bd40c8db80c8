"""How to plan: what the planner is told beside the snapshot (`model`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from synergy_core.model.measurement import Predictor
from synergy_core.model.snapshot import FieldError

Mode = Literal["round", "fill"]
ColocationMode = Literal["none", "thesis", "thesis-fractions", "auto", "gavel"]
THESIS_MODES: frozenset[ColocationMode] = frozenset({"thesis", "thesis-fractions"})
"""The modes that run the co-location thesis' algorithm 2; they differ in the form of delta (`colocation.delta`)."""
EstimateMode = Literal["none", "named", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityQueues:
    """How `2d-las` and `2d-gittins` tell jobs apart (Tiresias, section 3.2.3)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    thresholds_gpu_s: tuple[Annotated[float, Field(gt=0)], ...] = (3600.0, 36000.0)
    """Attained service, GPU-seconds, at which a job falls to the next queue, ascending: K - 1 of them for K queues.
    None: priorities are not discretised."""
    promote_knob: Annotated[float, Field(gt=0)] | None = None
    """A job that has waited so many times as long as it has run, or as the first queue would let it run if that is
    longer, goes to the head of the first queue; null: none does."""
    service_gpu_s: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """Whole service of finished jobs, GPU-seconds: the distribution that `2d-gittins` goes by."""

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
            raise FieldError("promote_knob", f"must be above 0, is {self.promote_knob}; leave it out to promote nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConfig:
    """How to plan. `round` decides everything anew; `fill` only gives free capacity to waiting jobs."""

    policy: str = "2d-las"
    mechanism: str = "tune"
    mode: Mode = "round"
    profile_gpu_percent: int = 25
    """All profile runs together hold at most this share of the cluster's GPUs; one may always run."""
    demand_tolerance: float = 0.05
    """A job counts as saturated at this much below its best speed."""
    queues: PriorityQueues = field(default_factory=PriorityQueues)
    pack_limit: float | None = None
    """PACKLIMIT: jobs with a larger skew are packed on the fewest nodes, others spread (Tiresias, section 3.3.2); null:
    all take the fewest nodes that have the room."""
    link_bytes_per_s: float | None = None
    """Measured bandwidth of a node's link: jobs whose `model_bytes` are known go by what all-reduce takes over it."""
    minimum_run_s: float = 0.0
    """Nobody displaces a job whose run is younger than this."""
    preemption_payback: float = 10.0
    """Protect a run until it has lasted so many times its preemption cost; 0: not at all."""
    colocation: ColocationMode = "none"
    """Who shares a GPU (`colocation.pairing`; of `gavel`, `colocation.combinations`)."""
    predictors: Mapping[str, Predictor] = field(default_factory=dict)
    """What sharing costs, by GPU type; types that are not there: `colocation.generic`."""
    sharing_retry_s: float = 3600.0
    """What was measured of jobs together stands for so long in place of what is predicted."""
    estimate: EstimateMode = "named"
    """On which GPU types that a job may use and has no matrix for its speed is what was measured there, or estimated
    from other jobs (Gavel, section 3.3): `named`, on those that its `gpu_types` names; `all`; `none`, on no type."""
    aware: bool = True
    """Whether policies over several GPU types see that a job's speed differs between them (Gavel)."""
    placement_sensitive: bool = False
    """Whether they see that it differs between few and many nodes (Gavel, section 3.1)."""
    explain: bool = True
    """False leaves `waiting` empty, and does not look at jobs behind the point of the line where nothing is left:
    faster, same plan."""
