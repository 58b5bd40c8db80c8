"""A job as the planner reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from synergy_core.model.snapshot.allocation import Allocation, BesideReference, Shared
from synergy_core.model.snapshot.limits import (
    STRICT,
    Count,
    FieldError,
    Moment,
    Name,
    Part,
    Positive,
    Priority,
    Seconds,
    Speed,
    Weight,
)
from synergy_core.model.snapshot.profile import Profile
from synergy_core.model.snapshot.quota import QuotaDraw
from synergy_core.model.usage import Usage

UNKNOWN_SKEW = 0.1
"""Taken for a model of which nothing is known: most have no tensor that outweighs the rest (Tiresias, table 6)."""

Level = Annotated[str, Field(pattern=r"^[0-4]$")]
Purpose = Literal["train", "profile"]
Placement = Literal["auto", "consolidate", "pack", "spread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that wants to run or runs."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    gpus: Positive
    arrival_s: Moment = 0.0
    weight: Weight = 1.0
    tenant: str = ""
    gpu_types: tuple[Name, ...] = ()
    """GPU types the job may run on; empty means any."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """Sensitivity matrix by GPU type. On a type without one the job runs at its GPU-proportional share."""
    measured: Mapping[str, Speed] = field(default_factory=dict)
    """Speed at that share by GPU type, as it was measured while the job ran; counts on types without a matrix."""
    steps_total: Positive | None = None
    steps_done: Count = 0
    exact_steps: Annotated[float, Field(gt=0)] | None = None
    """All its training steps, where that is known more exactly than in whole steps (`steps_total`)."""
    steps_left: Seconds | None = None
    """Steps that are left, where that is known more exactly than in whole steps; of a profile run, its seconds."""
    seconds_left: Seconds | None = None
    """Of a job that ends by time: seconds that it still trains, at whatever speed; null: it ends by its steps."""
    pause_share: Annotated[float, Field(ge=0, le=0.95)] = 0.0
    """The part of its training time in which it does no steps: evaluations and checkpoints."""
    attained_gpu_s: Seconds = 0.0
    waiting_s: Seconds = 0.0
    started_s: Moment | None = None
    """When it first got GPUs, on the clock of `arrival_s`; null before."""
    promoted_gpu_s: Seconds = 0.0
    """Its `attained_gpu_s` when it was last promoted for having waited too long (Tiresias, section 3.2.3); 0 before."""
    promoted_waiting_s: Seconds = 0.0
    """Its `waiting_s` at that moment."""
    run_started_s: Moment | None = None
    """When its present run began, on the clock of `arrival_s`; null while it waits, or where that is not known."""
    resumes_s: Moment | None = None
    """Until then its present run restores its checkpoint and does no step, on the clock of `arrival_s`; null: it
    steps, or that is not known."""
    isolated_s: Seconds = 0.0
    """Time that its first `isolated_steps` steps would have taken on 1/n of the cluster, n as it was (the last
    `Plan.isolated` of this job); later steps are valued at the present n."""
    isolated_steps: Annotated[float, Field(ge=0)] = 0.0
    """The steps that `isolated_s` covers."""
    preemption_cost_s: Seconds = 0.0
    """Seconds in which it would hold GPUs without a step if it were preempted: to checkpoint, and to restore later."""
    received_s: Mapping[str, Seconds] = field(default_factory=dict)
    """Time that it has run, by GPU type."""
    received_spread_s: Mapping[str, Seconds] = field(default_factory=dict)
    """The part of that in which it lay `spread` (`Allocation`)."""
    skew: Annotated[float, Field(ge=0)] = UNKNOWN_SKEW
    """Its largest tensor's part of the model's bytes (Tiresias, section 3.3)."""
    spread_speed: Part | None = None
    """Its speed on many nodes as part of that on the fewest, where both have been measured; beats all guesses."""
    spread_speeds: Mapping[Name, Part] = field(default_factory=dict)
    """The same by GPU type; on types that are not there `spread_speed` counts."""
    level_speeds: Mapping[Name, Mapping[Level, Part]] = field(default_factory=dict)
    """Its speed on nodes that share so many of their `domains` (`0`: none), as part of that where it is fastest, by GPU
    type; where it has been measured."""
    model: str = ""
    """What it trains, whatever its batch size and GPUs: on types that it was not measured on it is taken to be like
    jobs of the same model, where there are some. Empty: not known."""
    batch_size: Positive | None = None
    """Samples per step, over all GPUs; null: not known."""
    model_bytes: Positive | None = None
    """Bytes of its model, which all-reduce training sends in each step; null: not known."""
    overlap: Annotated[float, Field(ge=0, le=1)] | None = None
    """Part of a step during which it sends for nothing; null: not measured, the planner assumes two thirds."""
    sharing: bool = False
    """Whether it may share its GPU with jobs of its tenant: jobs of one GPU that may be preempted do."""
    sharing_across_tenants: bool = False
    """Whether with jobs of other tenants too, if these allow it as well."""
    min_throughput_fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    """The least part of the speed of its GPU-proportional share that it must keep; null: its fair share."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """What it does to a GPU alone, by GPU type; it shares GPUs of these types only."""
    shared: tuple[Shared, ...] = ()
    """What was measured while it shared, the newest last."""
    priority: Priority = 0
    """The value of its class: a higher one goes before the policy's order within its tenant."""
    urgent: bool = False
    """Its class does not wait for the round's end: jobs of lower classes give way at once."""
    preempted_s: tuple[Moment, ...] = ()
    """When it was last preempted, on the clock of `arrival_s`; preemption budgets count those of the last hour."""
    beside_references: tuple[BesideReference, ...] = ()
    """What profile runs measured of it beside reference jobs: predictions for all of its partners follow from that."""
    preemptible: bool = True
    running: Allocation | None = None
    """What the job holds now; null while it waits."""
    purpose: Purpose = "train"
    """`profile` is a profile run: at the head of the queue, with a fixed demand (the minima below), never preempted."""
    cpu_millis_min: Count = 0
    cpu_millis_max: Positive | None = None
    memory_bytes_min: Count = 0
    memory_bytes_max: Positive | None = None
    """Bounds on what the plan gives the whole job."""
    further_min: Mapping[str, Count] = field(default_factory=dict, hash=False)
    further_max: Mapping[str, Positive] = field(default_factory=dict, hash=False)
    """The same for further resources; names that the cluster's nodes do not have bound nothing."""
    placement: Placement = "auto"
    """`consolidate` waits for one node, `pack` for the fewest nodes that could hold it, `spread` takes what is left
    over on many, `auto` takes the fewest that have the room now; with a `pack_limit` it packs or spreads (`skew`)."""
    nodes: tuple[Name, ...] | None = None
    """Names of the nodes that the job may use; null means all."""
    deadline_s: Moment | None = None
    """When it should be done (its SLO), on the clock of `arrival_s`; null: whenever."""
    quotas: tuple[QuotaDraw, ...] = ()
    """The quotas that its pods and objects count against."""
    gpus_per_worker: Positive | None = None
    """GPUs of one pod at the most; null: one pod on each node. Only quotas count pods."""

    @property
    def has_end(self) -> bool:
        """True if it is known when the job is done."""
        return self.steps_total is not None or self.seconds_left is not None

    def left_s(self, speed: float) -> float | None:
        """Seconds that it still trains at `speed` steps per second, its pauses included; None if that is not known."""
        if self.seconds_left is not None:
            return self.seconds_left
        if self.steps_total is None or speed <= 0.0:
            return None
        return max(0, self.steps_total - self.steps_done) / (speed * (1.0 - self.pause_share))

    def __post_init__(self) -> None:
        for dimension in ("cpu_millis", "memory_bytes"):
            low, high = getattr(self, f"{dimension}_min"), getattr(self, f"{dimension}_max")
            if high is not None and low > high:
                raise FieldError(f"{dimension}_min", f"{low} is above {dimension}_max {high}; lower it")
        for name, low in self.further_min.items():
            if low > self.further_max.get(name, low):
                raise FieldError(
                    f"further_min.{name}", f"{low} is above further_max {self.further_max[name]}; lower it"
                )
        for gpu_type, spread in self.received_spread_s.items():
            whole = self.received_s.get(gpu_type, 0.0)
            if spread > whole:
                problem = f"{spread} is above received_s.{gpu_type} {whole}, of which it is a part; lower it"
                raise FieldError(f"received_spread_s.{gpu_type}", problem)
        if self.running is not None:
            _check_running(self, self.running)


def _check_running(job: Job, running: Allocation) -> None:
    if running.job != job.name:
        raise FieldError("running.job", f"is {running.job!r}, must be the job's own name {job.name!r}")
    held = sum(share.gpus for share in running.workers)
    if held != job.gpus:
        raise FieldError("running.workers", f"hold {held} GPUs, the job has {job.gpus}; they must agree")
    if len({share.node for share in running.workers}) != len(running.workers):
        raise FieldError("running.workers", "name a node twice; give one share per node")
