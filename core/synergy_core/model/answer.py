"""What the planner answers (Plan): frozen, without behaviour. Its allocations are the `model`'s.

Field names are those of the JSON form (`snapshot_format`).
"""

from dataclasses import dataclass
from typing import Literal

from synergy_core.model.snapshot import Allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job that is not running, why, and what would help."""

    job: str
    reason: str
    """One of `reasons.Reason`."""
    message: str
    at: float | None = None
    """When the nodes are expected that it waits for; null: it waits for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A job that will miss its deadline, as far as the plan can tell."""

    job: str
    reason: str
    """One of `deadlines.LateReason`."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A speed that the plan used and that was not measured."""

    job: str
    gpu_type: str
    steps_per_s: float
    """At the GPU-proportional share, before what the plan knows that a limit on threads takes of it."""
    reference: str
    """The job that it was taken for the like of; empty where that is gone and the job runs by its estimate."""


@dataclass(frozen=True, slots=True)
class IsolatedTime:
    """What a job's progress would have taken on 1/n of the cluster: an entry of its account (`policies.isolation`)."""

    job: str
    seconds: float
    steps: float
    """The steps that this covers, from the first on."""


@dataclass(frozen=True, slots=True)
class GaveWay:
    """A running job that leaves at once for one of an urgent class."""

    job: str
    urgent: str


@dataclass(frozen=True, slots=True)
class Displaced:
    """A running job of `Plan.preempted` whose place was taken."""

    job: str
    cause: Literal["guarantee", "limit", "order"]
    """For a guarantee of another tenant; because its own tenant may not hold so much; for a job that comes before."""
    by: tuple[str, ...] = ()
    """The job that it was taken for, or several that share GPUs; empty if it was taken for none."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Nodes to ask for: so many of a node group, and the jobs that would run there."""

    group: str
    nodes: int
    jobs: tuple[str, ...]


SharesFrom = Literal["", "cut-short", "last", "isolated"]
"""Where the allocation matrix of a plan came from: the policy itself (or it has none); the best that was found when
time ran out; an earlier plan, with an isolated share for each job that came since; the isolated shares of all jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The planner's answer.

    `waiting` is in the order of the queue. `preempted` names running jobs whose run ends: they are in `waiting`, or in
    `allocations` with another place (a move is an end and a new start). `resized` names jobs that stay where they are
    with other CPU or memory. `promoted` names jobs whose `promoted_gpu_s` and `promoted_waiting_s` the caller must set
    to their present values. `late` names jobs that will miss their deadlines. `isolated` has the values to which the
    caller must set the `isolated_s` and `isolated_steps` of jobs. `gave_way` names those of `preempted` that leave at
    once, whatever the mode. `displaced` says of those of `preempted` whose places were taken why, in the order in which
    that was decided. `growth` has nodes to ask for, and `unneeded` the promises that no waiting job needs.
    """

    allocations: tuple[Allocation, ...]
    waiting: tuple[Waiting, ...]
    preempted: tuple[str, ...]
    resized: tuple[str, ...]
    policy: str
    mechanism: str
    promoted: tuple[str, ...] = ()
    late: tuple[Late, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    shares_from: SharesFrom = ""
    isolated: tuple[IsolatedTime, ...] = ()
    gave_way: tuple[GaveWay, ...] = ()
    displaced: tuple[Displaced, ...] = ()
    growth: tuple[Growth, ...] = ()
    unneeded: tuple[str, ...] = ()
