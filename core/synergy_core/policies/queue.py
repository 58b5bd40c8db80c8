"""What a policy sees, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Protocol

from synergy_core.model.answer import IsolatedTime, SharesFrom
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.config import PriorityQueues
from synergy_core.model.snapshot import Job, Placement, Tenant
from synergy_core.model.tenant_tree import NO_TENANTS, TenantTree
from synergy_core.policies.allocation.solutions import Solutions
from synergy_core.throughput.levels import Tier


class Pairs(Protocol):
    """The pairs of jobs that may share a GPU (Gavel, section 3.1)."""

    def rows(self, jobs: Sequence[Job], types: Sequence[str], alone: Floats, workers: Floats) -> tuple[Ints, Floats]:
        """Of jobs with these throughputs `alone` (J x W), the pairs (P x 2, indices) and theirs (P x W x 2).

        0 where a pair cannot share a GPU of a type, or nothing is gained by it.
        """
        ...

    def gpus(self, jobs: Sequence[Job], gpu_type: str) -> int:
        """GPUs of a type that these jobs could share."""
        ...


@dataclass(frozen=True, slots=True)
class Queue:
    """All jobs that want to run or run, in no particular order."""

    now: float
    """Seconds, on the clock of `Job.arrival_s`."""
    jobs: tuple[Job, ...]
    steps_per_s: Callable[[Job], float]
    """Speed of a job at its GPU-proportional share on the GPU type where it is fastest; 0 where it is not known."""
    gpus: int = 0
    """GPUs of the cluster, all types together."""
    queues: PriorityQueues = field(default_factory=PriorityQueues)
    """Settings of the policies with discretised queues."""
    speeds: Callable[[Job], Mapping[str, float]] = lambda _: {}
    """Speed of a job at its GPU-proportional share on each GPU type that could hold it; 0 where it is not known."""
    gpus_of: Mapping[str, int] = field(default_factory=dict)
    """GPUs of each type that take jobs."""
    speed_parts: Callable[[Job], Mapping[str, tuple[float, float]]] = lambda _: {}
    """By GPU type, what parts of its speed a job has on the fewest nodes and spread (0: never); (1, 0) elsewhere."""
    tiers: Callable[[Job], Mapping[str, tuple[Tier, ...]]] = lambda _: {}
    """By GPU type with domains, what it keeps of its speed by how near its nodes are, the nearest first."""
    aware: bool = True
    """Whether policies over several GPU types see that they differ in speed."""
    round_s: float = 300.0
    prices: Mapping[str, float] = field(default_factory=dict)
    """Price of a GPU for an hour, by type, on average over its nodes; 0 where one of them has none."""
    tenants: tuple[Tenant, ...] = ()
    tree: TenantTree = NO_TENANTS
    """The same tenants, with what they may have and are guaranteed."""
    solutions: Solutions = field(default_factory=Solutions)
    """Allocations of earlier plans."""
    pairs: Pairs | None = None
    """Pairs that may share a GPU, for policies that decide on sharing themselves; None: no pairs."""

    def remaining_s(self, job: Job) -> float | None:
        """Seconds that a job still needs at its GPU-proportional share; None where that is not known."""
        return job.left_s(self.steps_per_s(job))


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of a policy: job names, each once, the highest first."""

    names: tuple[str, ...]
    promoted: tuple[str, ...] = ()
    """Jobs that are promoted now because they waited too long (Tiresias, section 3.2.3)."""
    first: tuple[str, ...] = ()
    """Promoted jobs at the head of the queue. Nodes are reserved for them (`node_reservation`)."""
    preempts: bool = True
    """A running job may be displaced by one above it."""
    passes: bool = True
    """A job may run while one above it does not fit yet."""
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """GPU types on which a job may run this round, the first choice first; of others, any, the fastest first."""
    placements: Mapping[str, Mapping[str, Placement]] = field(default_factory=dict)
    """By job and GPU type, how its GPUs are placed this round: `spread`, or `pack` as long as there is room, else on
    any idle GPUs. Jobs that are missing decide themselves."""
    nearness: Mapping[str, Mapping[str, Tier]] = field(default_factory=dict)
    """By job and GPU type, how near its nodes are where they are packed, as long as there is room."""
    divides: bool = False
    """It divides the time on GPUs among all jobs and tenants; else it only orders them."""
    strict: bool = False
    """Classes count across tenants: beyond guarantees, no tenant goes before a job of a higher class."""
    leaves_idle: bool = False
    """GPUs that it gives to no job stay idle between rounds too: they cost more than they bring."""
    colliding: tuple[str, ...] = ()
    """Jobs that would keep their deadlines if others had none."""
    together: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Jobs that share one GPU in this round: its type, and their names."""
    shares_from: SharesFrom = ""
    """Where the allocation came from, for policies that have one."""
    isolated: tuple[IsolatedTime, ...] = ()
    """What progress would have taken in isolation, for the policy that measures jobs by it."""

    def led_by(self, head: tuple[str, ...]) -> "Ranking":
        """The same with these jobs at the head; they are `first` too."""
        if not head:
            return self
        rest = (name for name in self.names if name not in head)
        return replace(self, names=(*head, *rest), first=tuple(dict.fromkeys([*head, *self.first])))


def ranked(queue: Queue, key: Callable[[Job], Any]) -> Ranking:
    """The jobs by `key`, the smallest first, then by arrival and name."""
    jobs = sorted(queue.jobs, key=attrgetter("arrival_s", "name"))
    jobs.sort(key=key)
    return Ranking(tuple([job.name for job in jobs]))
