"""What the planner reads (Snapshot): frozen, without behaviour. `config` says how it plans, `answer` what it answers.

Units: GPUs are counted, CPU is in milli-CPU, memory in bytes, time in seconds, speed in training steps per second of
the whole job. All resources are integers. The field names are those of the JSON form (`snapshot_format`), which also
checks the constraints written here; a Snapshot that a program builds itself is trusted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from synergy_core.model.usage import Usage

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Name = Annotated[str, Field(min_length=1)]
_MOST = 1 << 50
"""No amount is larger (as bytes it is a pebibyte): sums over a cluster stay within 64 bits."""
Count = Annotated[int, Field(ge=0, le=_MOST)]
Positive = Annotated[int, Field(ge=1, le=_MOST)]
Seconds = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]
SLOWEST, FASTEST = 1e-6, 1e9
"""Steps per second that a job can be said to have: beyond them nothing trains, and sums and quotients of speeds would
leave what a float can hold, in the plan of every job."""
Speed = Annotated[float, Field(ge=SLOWEST, le=FASTEST)]
LIGHTEST, HEAVIEST = 1e-6, 1e6
Weight = Annotated[float, Field(ge=LIGHTEST, le=HEAVIEST)]
Part = Annotated[float, Field(ge=1e-6, le=1e6)]
"""A speed as part of another."""
Price = Annotated[float, Field(ge=0, le=1e9)]
Moment = Annotated[float, Field(ge=-1e15, le=1e15)]

_OWN_FIELDS = ("gpus", "cpu_millis", "memory_bytes")

UNKNOWN_SKEW = 0.1
"""Taken for a model of which nothing is known: most have no tensor that outweighs the rest (Tiresias, table 6)."""

Purpose = Literal["train", "profile"]
Placement = Literal["auto", "consolidate", "pack", "spread"]


class FieldError(ValueError):
    """A value that cannot be used: `path` is the field within the object, `problem` says what to change."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def check_speed(speed: float, path: str) -> None:
    """Raise FieldError for a speed that is neither 0 nor from SLOWEST to FASTEST."""
    if speed != 0.0 and not SLOWEST <= speed <= FASTEST:
        raise FieldError(path, f"must be 0 or from {SLOWEST:g} to {FASTEST:g} steps per second, is {speed:g}")


def _checked(matrix: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    for index, row in enumerate(matrix):
        for place, speed in enumerate(row):
            check_speed(speed, f"[{index}][{place}]")
    return matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine with GPUs of one type. `*_used` is what pods hold that are not planned here."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: Name
    gpu_type: Name
    gpus: Count
    cpu_millis: Count
    memory_bytes: Count
    gpus_used: Count = 0
    cpu_millis_used: Count = 0
    memory_bytes_used: Count = 0
    further: Mapping[str, Count] = field(default_factory=dict, hash=False)
    """Further resources by name, such as storage or network bandwidth; every node of a cluster names the same ones."""
    further_used: Mapping[str, Count] = field(default_factory=dict, hash=False)
    replicas: Positive = 1
    """Clients that may share one GPU."""
    gpu_memory_bytes: Count = 0
    """Of one GPU; 0: not known, and its GPUs are not shared."""
    client_memory_bytes: Count = 0
    """Of its GPUs' memory, what MPS leaves each client of a shared one; 0: all that is there."""
    client_thread_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Of its GPUs' threads, what MPS lets each client use, one that has its GPU alone too."""
    schedulable: bool = True
    """False for a cordoned node: what runs there stays, nothing new comes."""
    price_per_hour: Price = 0.0
    """Of one GPU, in any one currency; 0: not known."""
    devices_per_gpu: Positive = 1
    """What a quota counts for each GPU: the device plugin's devices where GPUs are shared."""
    counted_as: Literal["gpus", "shared_gpus"] = "gpus"
    """Which limits of a quota count them (`QuotaLimit.counts`)."""

    def __post_init__(self) -> None:
        for name in (name for name in _OWN_FIELDS if name in self.further):
            raise FieldError(f"further.{name}", "has a field of its own; give it there")
        for name in self.further_used:
            if name not in self.further:
                raise FieldError(f"further_used.{name}", "is not in further; say there how much the node has")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Sensitivity matrix of a job on one GPU type (Synergy, section 3.1).

    `steps_per_s[i][j]` is the speed of the whole job, all its GPUs together, with `cpu_millis[i]` and
    `memory_bytes[j]`. All axes ascend strictly. With further axes there is a column for each combination of memory
    with a point of each of them, in the order of their names, the last one varying fastest.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    cpu_millis: Annotated[tuple[Positive, ...], Field(min_length=1)]
    memory_bytes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    steps_per_s: Annotated[tuple[tuple[float, ...], ...], AfterValidator(_checked)]
    further: Mapping[str, Annotated[tuple[Positive, ...], Field(min_length=1)]] = field(
        default_factory=dict, hash=False
    )
    """Axes of further resources by name."""
    client_thread_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Of each GPU's threads, what MPS left the job while it was measured: the speeds have that limit in them."""

    def __post_init__(self) -> None:
        axes = {"cpu_millis": self.cpu_millis, "memory_bytes": self.memory_bytes}
        axes.update((f"further.{name}", axis) for name, axis in sorted(self.further.items()))
        for name, axis in axes.items():
            for index in range(1, len(axis)):
                if axis[index] <= axis[index - 1]:
                    raise FieldError(f"{name}[{index}]", f"{axis[index]} is not above {axis[index - 1]}; sort the axis")
        if len(self.steps_per_s) != len(self.cpu_millis):
            problem = f"has {len(self.steps_per_s)} rows for {len(self.cpu_millis)} CPU points; give one row per point"
            raise FieldError("steps_per_s", problem)
        columns = prod(len(axis) for axis in axes.values()) // len(self.cpu_millis)
        points = "combinations of memory and further points" if self.further else "memory points"
        each = "one per combination" if self.further else "one per point"
        for index, row in enumerate(self.steps_per_s):
            if len(row) != columns:
                problem = f"has {len(row)} values for {columns} {points}; give {each}"
                raise FieldError(f"steps_per_s[{index}]", problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShare:
    """What one node gives a job."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    node: Name
    gpus: Positive
    cpu_millis: Count
    memory_bytes: Count
    further: Mapping[str, Count] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A job's place: its share of each node, sorted by node. A speed of 0 means that the speed is not known."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    job: Name
    gpu_type: Name
    workers: Annotated[tuple[NodeShare, ...], Field(min_length=1)]
    steps_per_s: Rate = 0.0
    proportional_steps_per_s: Rate = 0.0
    """Speed the job would have at the GPU-proportional share on the same nodes."""
    estimated: bool = False
    """Whether these speeds are estimated from other jobs: it was never measured on this GPU type."""
    spread: bool = False
    """Under a placement-sensitive policy: it is on more nodes than the fewest that could hold it.
    The speeds are those on the fewest in any case."""
    shares_gpu_with: Name | tuple[Name, ...] | None = None
    """The job that has the same GPU; a list where there are more."""
    delta_by_fractions: bool = False
    """In co-location mode `thesis`: an iteration time was not known, and delta was taken from the fractions alone."""

    @property
    def partners(self) -> tuple[str, ...]:
        """The jobs that have the same GPU, sorted."""
        others = self.shares_gpu_with
        return () if others is None else (others,) if isinstance(others, str) else others


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What became of a job while it shared a GPU: its measured speed over what it would have had alone."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    gpu_type: Name
    partners: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Sorted."""
    usages: tuple[Usage, ...] = ()
    """Of the partners, in their order: with them it corrects predictions for other partners too."""
    fraction: Annotated[float, Field(gt=0, le=4)]
    at_s: float
    """When it was measured, on the clock of `now`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLimit:
    """One resource of a quota."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    resource: Name
    """What the admin calls it, such as `requests.nvidia.com/gpu`."""
    counts: Literal["gpus", "shared_gpus", "cpu_millis", "memory_bytes", "objects"]
    """What of a job's share of its nodes it counts; `objects` counts nothing of it."""
    hard: Count
    used: Count = 0
    """Held by others than the snapshot's running jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What the jobs that draw on it may hold together (a ResourceQuota of their namespace)."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: Name
    limits: tuple[QuotaLimit, ...]

    def __post_init__(self) -> None:
        _unique("limits", [limit.resource for limit in self.limits], "resource")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaDraw:
    """A quota that a job counts against while it runs, and by how much beside its share of its nodes."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    quota: Name
    once: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """By resource, what its run needs once, such as a Service."""
    per_pod: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """By resource, what each of its pods needs beside its share: itself, and limits above requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that wants to run or runs."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

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
    model: str = ""
    """What it trains, whatever its batch size and GPUs: on types that it was not measured on it is taken to be like
    jobs of the same model, where there are some. Empty: not known."""
    batch_size: Positive | None = None
    """Samples per step, over all GPUs; null: not known."""
    model_bytes: Positive | None = None
    """Bytes of its model, which all-reduce training sends in each step; null: not known."""
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


@dataclass(frozen=True, slots=True)
class Tenant:
    """One of several users or groups that share the cluster (Gavel, section 4.3)."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: Name
    weight: Weight = 1.0
    policy: Literal["fairness", "fifo"] = "fairness"
    """How its part is allocated to its jobs: by their weights, or in the order of arrival."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a cluster at one moment. The order of nodes and jobs does not matter."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    now: Moment = 0.0
    round_s: Annotated[float, Field(gt=0)] = 300.0
    tenants: tuple[Tenant, ...] = ()
    """For the policy `hierarchical`; a job's tenant that is not named here has weight 1 and fairness."""
    quotas: tuple[Quota, ...] = ()
    """What jobs may hold together beside what the nodes have."""

    def __post_init__(self) -> None:
        _unique("nodes", [node.name for node in self.nodes])
        _unique("jobs", [job.name for job in self.jobs])
        _unique("tenants", [tenant.name for tenant in self.tenants])
        _unique("quotas", [quota.name for quota in self.quotas])
        _alike(self.nodes)
        _known_quotas(self.jobs, {quota.name for quota in self.quotas})


def _known_quotas(jobs: tuple[Job, ...], known: set[str]) -> None:
    for index, job in enumerate(jobs):
        for place, draw in enumerate(job.quotas):
            if draw.quota not in known:
                path = f"jobs[{index}].quotas[{place}].quota"
                raise FieldError(path, f"{draw.quota!r} is not in quotas; describe it there")


def _alike(nodes: tuple[Node, ...]) -> None:
    for index, node in enumerate(nodes):
        for name in sorted(node.further.keys() ^ nodes[0].further.keys()):
            lacking = index if name not in node.further else 0
            problem = f"missing, node {nodes[index - lacking].name!r} has it; give it for every node"
            raise FieldError(f"nodes[{lacking}].further.{name}", problem)


def _unique(kind: str, names: list[str], named_by: str = "name") -> None:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            raise FieldError(
                f"{kind}[{index}].{named_by}", f"{name!r} is also {kind}[{first[name]}]; names must differ"
            )
