"""The scheduling queue of a plan, and the job index that it is made from.

Most jobs of a long queue are never looked at closely: once nothing is left to assign, they wait. An entry is made when
it is needed: for running jobs at once, for the others when the walk along the queue comes to them.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from synergy_core.model.config import Mode
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation, Job, Placement
from synergy_core.policies.queue import Ranking
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.throughput.levels import Tier


class JobInfos(Protocol):
    """Where a plan's knowledge of its jobs comes from (`synergy_core.cache`)."""

    @property
    def pools(self) -> Sequence[Pool]:
        """The nodes, by GPU type."""
        ...

    def info(self, job: Job) -> JobInfo:
        """What is known of a job: always the same object for the same job."""
        ...


@dataclass(frozen=True, slots=True)
class QueueRules:
    """What holds for the jobs of one scheduling queue, beside their order."""

    preempts: bool = True
    """A running job may be displaced by one higher in the queue."""
    passes: bool = True
    """A job may run while one higher in the queue does not fit yet."""
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """`Ranking.types`."""
    placements: Mapping[str, Mapping[str, Placement]] = field(default_factory=dict)
    """`Ranking.placements`."""
    nearness: Mapping[str, Mapping[str, Tier]] = field(default_factory=dict)
    """`Ranking.nearness`."""
    by_price: bool = False
    """`Ranking.leaves_idle`."""
    first: Container[str] = ()
    """Promoted jobs (`Ranking.first`)."""
    protected: Container[str] = ()
    """Running jobs that no other may displace yet. They do not move to another GPU type either."""
    least_run_s: Callable[[Job], float] = lambda _: 0.0
    """For how long a run of a job will be protected."""
    wants_shared: Callable[[Job], frozenset[str] | None] = lambda _: None
    """`QueueEntry.wants_shared` of a job."""
    pods_matter: Callable[[Job], bool] = lambda _: False
    """`QueueEntry.pods_matter` of a job."""


class SchedulingQueue:
    """Queue entries, the highest in the queue first."""

    def __init__(self, job_index: "JobIndex", names: Sequence[str], rules: QueueRules) -> None:
        self._job_index = job_index
        self._names = names
        self._rules = rules
        self._entries: dict[str, QueueEntry] = {}
        ranks = {name: rank for rank, name in enumerate(names)}
        running = sorted((ranks[info.name], info) for info in job_index.running if info.name in ranks)
        self.running: list[QueueEntry] = [self._entry(rank, info) for rank, info in running]
        """The entries of running jobs, in the order of the queue."""

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[QueueEntry]:
        return map(self.entry, range(len(self._names)))

    def entry(self, rank: int) -> QueueEntry:
        """The entry at a position."""
        name = self._names[rank]
        return self._entries.get(name) or self._entry(rank, self._job_index.info(name))

    def job(self, rank: int) -> Job:
        """The job at a position, without an entry being made for it."""
        return self._job_index.jobs[self._names[rank]]

    def is_ahead(self, rank: int) -> bool:
        """The job there comes before all that the policy orders: it is promoted, or a profile run."""
        return self._names[rank] in self._rules.first or self.job(rank).purpose == "profile"

    def _entry(self, rank: int, info: JobInfo) -> QueueEntry:
        rules, name = self._rules, info.name
        is_protected = name in rules.protected
        types = None if is_protected else rules.types.get(name)
        entry = self._entries[name] = QueueEntry(
            info,
            rank,
            stays_for_now=is_protected or not rules.preempts,
            is_protected=is_protected,
            goes_first=name in rules.first,
            least_run_s=rules.least_run_s(info.job),
            pods_matter=rules.pods_matter(info.job),
            wants_shared=rules.wants_shared(info.job),
            goes_by_price=rules.by_price and types is not None,
            types=types,
            placements={} if is_protected else rules.placements.get(name, {}),
            nearness={} if is_protected else rules.nearness.get(name, {}),
        )
        return entry

    @property
    def preempts(self) -> bool:
        """Whether a running job may be displaced by one above it."""
        return self._rules.preempts

    @property
    def passes(self) -> bool:
        """Whether a job may run while one higher in the queue does not fit yet."""
        return self._rules.passes

    def led_by(self, first: Sequence[str]) -> "SchedulingQueue":
        """The queue with these jobs at its head, in this order; the others follow as they were."""
        ahead = set(first)
        names = [*first, *(name for name in self._names if name not in ahead)]
        return SchedulingQueue(self._job_index, names, self._rules)

    @property
    def fewest_gpus(self) -> int:
        """The fewest GPUs that any of the jobs needs; 0 where there is none."""
        return min((self._job_index.jobs[name].gpus for name in self._names), default=0)


class JobIndex:
    """The jobs of one plan by name."""

    def __init__(self, jobs: Sequence[Job], infos: JobInfos) -> None:
        self.jobs = {job.name: job for job in jobs}
        self._infos = infos
        self.running = [infos.info(job) for job in jobs if job.running is not None]

    def info(self, name: str) -> JobInfo:
        """What is known of the job of this name."""
        return self._infos.info(self.jobs[name])

    def best_speed(self, job: Job) -> float:
        """Steps per second at the proportional share on the GPU type where the job is fastest; 0: not known."""
        return self._infos.info(job).job_class.best_speed(self._infos.pools)

    def speeds(self, job: Job) -> Mapping[str, float]:
        """Steps per second at the proportional share on each GPU type that could hold the job; 0: not known."""
        info = self.info(job.name)
        return info.job_class.share_speeds(self._infos.pools, on_one_node=info.placement == "consolidate")

    def speed_parts(self, job: Job) -> Mapping[str, tuple[float, float]]:
        """By GPU type, what the job has of its speed on the fewest nodes and spread (`JobInfo.speed_parts`)."""
        return self.info(job.name).speed_parts(self._infos.pools)

    def tiers(self, job: Job) -> Mapping[str, tuple[Tier, ...]]:
        """By GPU type, how near its nodes may be and what it keeps there (`JobInfo.tiers`); not of types without
        domains."""
        info = self.info(job.name)
        found = ((pool.gpu_type, info.tiers(pool)) for pool in self._infos.pools if info.may_use(pool))
        return {gpu_type: known for gpu_type, known in found if known}

    def queue(
        self,
        ranking: Ranking,
        *,
        without: Container[str],
        protected: Container[str] = (),
        least_run_s: Callable[[Job], float] = lambda _: 0.0,
        wants_shared: Callable[[Job], frozenset[str] | None] = lambda _: None,
        pods_matter: Callable[[Job], bool] = lambda _: False,
    ) -> SchedulingQueue:
        """The policy's order as a queue, without some jobs. For the other arguments see `QueueRules`."""
        names = [name for name in ranking.names if name not in without]
        rules = QueueRules(
            preempts=ranking.preempts,
            passes=ranking.passes,
            types=ranking.types,
            placements=ranking.placements,
            nearness=ranking.nearness,
            by_price=ranking.leaves_idle,
            first=frozenset(ranking.first),
            protected=protected,
            least_run_s=least_run_s,
            wants_shared=wants_shared,
            pods_matter=pods_matter,
        )
        return SchedulingQueue(self, names, rules)


def out_of_reach(running: Iterable[JobInfo], mode: Mode) -> dict[str, Allocation]:
    """What jobs hold on nodes that are no longer there: fill mode keeps it."""
    if mode != "fill":
        return {}
    lost = {info.name: info.job.running for info in running if info.held is None}
    return {name: allocation for name, allocation in lost.items() if allocation is not None}
