"""Whether jobs may share one GPU, on which nodes, and what each keeps of its speed.

What a job keeps is relative to its speed at the GPU-proportional share, with its part of one GPU's CPU and memory
(`group`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from synergy_core.colocation.group import GroupMember, member, split
from synergy_core.colocation.rules import Rules
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job, Node, Snapshot
from synergy_core.throughput.estimates import NO_SPEEDS, Speeds
from synergy_core.throughput.threads import ceiling, kept_alone, least_percent, most_percent

WORTH = 0.05
"""What sharing must gain, in speeds of a job, to be begun: speeds are not known better."""
_LESS = 1e-9
_NEARLY_ALL = 0.95
"""Part of its speed that a job must keep to prefer a node where another can join it."""


@dataclass(slots=True)
class Candidate:
    """Jobs that could share one GPU of a type."""

    gpu_type: str
    jobs: list[Job]
    nodes: tuple[Node, ...] = ()
    """Where they may have it together."""
    members: tuple[GroupMember, ...] = ()
    each: tuple[float, ...] = ()
    """What each keeps, in the order of the jobs."""
    by_fractions: bool = False
    """In mode `thesis`: an iteration time is not known, so that delta is taken from the fractions alone."""

    @property
    def kept(self) -> float:
        """Sum of what they keep."""
        return sum(self.each) if self.each else 1.0

    @property
    def compute(self) -> float:
        """Sum of their compute."""
        return sum(job.usage[self.gpu_type].compute for job in self.jobs)

    def take(self, grown: "Candidate") -> None:
        """Become another group."""
        self.jobs, self.nodes, self.members, self.each = grown.jobs, grown.nodes, grown.members, grown.each
        self.by_fractions = grown.by_fractions


class Grouping:
    """For one plan."""

    def __init__(
        self, snapshot: Snapshot, pools: Sequence[Pool], config: PlanConfig, speeds: Speeds | None = None
    ) -> None:
        """`speeds` are those that are known of jobs on GPU types without a matrix."""
        self._speeds = speeds or Speeds()
        self.rules = Rules(snapshot.nodes, snapshot.jobs, config, snapshot.now, self._speeds.is_estimated)
        self.pools = {pool.gpu_type: pool for pool in pools}
        self._percent = {pool.gpu_type: least_percent(pool.nodes) for pool in pools}
        self.limits_threads = min(self._percent.values(), default=100) < 100
        """A job that does not share may have less than all of a GPU's threads."""
        self._shares = config.colocation != "none"
        self._needs_times = config.colocation == "thesis"
        self._mixed = [
            pool.gpu_type
            for pool in pools
            if pool.shared is not None and (self._shares or self._percent[pool.gpu_type] < 100)
        ]
        self._tolerance = config.demand_tolerance
        self._jobs = snapshot.jobs
        self._fair: dict[frozenset[str], float] = {}
        self._members: dict[tuple[str, str], GroupMember] = {}

    @property
    def basis(self) -> dict[str, object]:
        """By GPU type, what decides what jobs keep there, beside the jobs themselves and the rules."""
        return {gpu_type: (pool.nodes, self._tolerance) for gpu_type, pool in self.pools.items()}

    @cached_property
    def _wanted(self) -> Counter[frozenset[str]]:
        """GPUs that jobs want, by the types that they may use; most plans do not ask."""
        wanted = Counter[frozenset[str]]()
        for job in self._jobs:
            wanted[self._types(job)] += job.gpus
        return wanted

    def together(
        self, jobs: Sequence[Job], gpu_type: str, fractions: Sequence[float] | None = None
    ) -> Candidate | None:
        """The jobs on one GPU of the type; None where they may not or cannot.

        `fractions`: the fraction of its speed that each keeps beside the others; by default what the rules say.
        """
        nodes = self.rules.types(jobs).get(gpu_type)
        if not nodes:
            return None
        pool = self.pools[gpu_type]
        told = self.rules.fractions(jobs, gpu_type) if fractions is None else fractions
        members = tuple(self._member(one, pool, fraction) for one, fraction in zip(jobs, told, strict=True))
        parts = split(members, pool.least_share)
        lows = zip(parts, jobs, strict=True)
        if any(part[0] < max(1, job.cpu_millis_min) or part[1] < max(1, job.memory_bytes_min) for part, job in lows):
            return None
        each = tuple(one.kept(part) for one, part in zip(members, parts, strict=True))
        by_fractions = self._needs_times and any(one.best <= 0.0 for one in members)
        return Candidate(gpu_type, list(jobs), nodes, members, each, by_fractions)

    def fair(self, job: Job) -> float:
        """A job's fair share: the GPUs of the types that it may use, for each GPU that is wanted by the jobs that may
        use one of them."""
        types = self._types(job)
        if types not in self._fair:
            there = sum(self.pools[gpu_type].open_gpus[0] for gpu_type in types)
            wanted = sum(gpus for others, gpus in self._wanted.items() if others & types)
            self._fair[types] = min(1.0, there / max(1, wanted))
        return self._fair[types]

    def alone(self, job: Job, gpu_type: str) -> float:
        """What the job keeps of its speed at its share where it does not share.

        Less than all where every node of the type that it may use limits a client's threads, and these limit the job
        rather than CPU and memory.
        """
        if self._percent[gpu_type] == 100:
            return 1.0
        pool = self.pools[gpu_type]
        allowed = (node for node in pool.nodes if job.nodes is None or node.name in job.nodes)
        part = kept_alone(job, gpu_type, most_percent(allowed))
        if part >= 1.0:
            return 1.0
        one = self._member(job, pool, part)
        return min(1.0, part * one.best / one.usual) if one.usual > 0 else part

    def wants_shared(self, job: Job) -> frozenset[str] | None:
        """The GPU types on which the job prefers a node with shared GPUs.

        A job prefers it if it may share and loses nothing there while it is alone. Another job would take a GPU that
        two could have, and lose what the limit on threads costs. None where no type has both kinds of nodes.
        """
        if not self._mixed:
            return None
        sharing = self._shares and self.rules.may_share(job)
        return frozenset(
            gpu_type
            for gpu_type in self._mixed
            if sharing
            and self.rules.shares_on(job, gpu_type)
            and ceiling(job.usage[gpu_type], self._percent[gpu_type]) > _NEARLY_ALL
        )

    def _types(self, job: Job) -> frozenset[str]:
        return frozenset(self.pools.keys() & set(job.gpu_types) if job.gpu_types else self.pools.keys())

    def bearable(self, group: Candidate) -> bool:
        """Each job keeps its fair share, or what its user wants it to keep."""
        fair = (self.fair(job) * self.alone(job, group.gpu_type) for job in group.jobs)
        return all(map(self.bears, group.jobs, group.each, fair))

    def bears(self, job: Job, kept: float, fair: float) -> bool:
        """What a job keeps is enough, given its fair share."""
        return kept >= self.least(job, fair)

    def least(self, job: Job, fair: float) -> float:
        """What the job must keep, given its fair share."""
        return (fair if job.min_throughput_fraction is None else job.min_throughput_fraction) - _LESS

    def member(self, job: Job, gpu_type: str) -> GroupMember:
        """What the job is on a type while it shares and keeps all of its best speed."""
        return self._member(job, self.pools[gpu_type], 1.0)

    def _member(self, job: Job, pool: Pool, fraction: float) -> GroupMember:
        key = (job.name, pool.gpu_type)
        known = self._members.get(key)
        if known is None:
            speeds = self._speeds.of.get(job.name, NO_SPEEDS)
            known = self._members[key] = member(job, pool, fraction, self._tolerance, speeds)
        return known.keeping(fraction)
