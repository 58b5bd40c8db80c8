"""The jobs of a plan as queue entries in line.

Most jobs of a long queue are never looked at closely: once nothing is left to promise, they wait. An entry is made when
it is needed: for running jobs at once, for the others when the walk along the queue comes to them.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from synergy_core.model.config import Mode
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation, Job, Placement
from synergy_core.policies.queue import Ranking
from synergy_core.selection.queue_entry import QueueEntry


class QueueEntries(Protocol):
    """Where the queue entries of one plan come from (`synergy_core.cache`)."""

    @property
    def pools(self) -> Sequence[Pool]:
        """The nodes, by GPU type."""
        ...

    def entry(self, job: Job) -> QueueEntry:
        """The queue entry of a job: always the same one."""
        ...


class SchedulingQueue:
    """Queue entries, the first in line first."""

    def __init__(
        self,
        job_index: "JobIndex",
        names: Sequence[str],
        *,
        preempts: bool = True,
        passes: bool = True,
        types: Mapping[str, tuple[str, ...]] | None = None,
        lies: Mapping[str, Mapping[str, Placement]] | None = None,
        settling: Container[str] = (),
        first: Container[str] = (),
        least_run_s: Callable[[Job], float] = lambda _: 0.0,
        wants_shared: Callable[[Job], frozenset[str] | None] = lambda _: None,
        by_price: bool = False,
    ) -> None:
        self._roster = job_index
        self._settling = settling
        self._first = first
        self._least_run_s = least_run_s
        self._wants_shared = wants_shared
        self._by_price = by_price
        self._types = types or {}
        self._lies = lies or {}
        self._names = names
        self._preempts = preempts
        self.passes = passes
        """Whether a job may go ahead while one before it does not fit yet."""
        ranks = {name: rank for rank, name in enumerate(names)}
        running = sorted((ranks[one.name], one) for one in job_index.running if one.name in ranks)
        for rank, entry in running:
            entry.rank = rank
            entry.stays_for_now = not preempts or entry.name in settling
            self._tell(entry)
        self.running: list[QueueEntry] = [entry for _, entry in running]
        """Those that run, in the order of the line."""

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[QueueEntry]:
        for rank, name in enumerate(self._names):
            entry = self._roster.entry(name)
            entry.rank = rank
            self._tell(entry)
            yield entry

    def _tell(self, entry: QueueEntry) -> None:
        """What holds for a job in this plan. One that may not be displaced yet does not move to another type either."""
        entry.goes_first = entry.name in self._first
        entry.least_run_s = self._least_run_s(entry.job)
        entry.wants_shared = self._wants_shared(entry.job)
        entry.kept_off = {}
        entry.pods_matter = False
        entry.types = None if entry.name in self._settling else self._types.get(entry.name)
        entry.lies = {} if entry.name in self._settling else self._lies.get(entry.name, {})
        entry.goes_by_price = self._by_price and entry.types is not None

    def led_by(self, first: Sequence[str]) -> "SchedulingQueue":
        """The line with these at its head, in this order; the others follow as they were."""
        ahead = set(first)
        names = [*first, *(name for name in self._names if name not in ahead)]
        return SchedulingQueue(
            self._roster,
            names,
            preempts=self._preempts,
            passes=self.passes,
            types=self._types,
            lies=self._lies,
            settling=self._settling,
            first=self._first,
            least_run_s=self._least_run_s,
            wants_shared=self._wants_shared,
            by_price=self._by_price,
        )

    @property
    def fewest_gpus(self) -> int:
        """The fewest GPUs that any of them needs; 0 where there is none."""
        return min((self._roster.jobs[name].gpus for name in self._names), default=0)


class JobIndex:
    """The jobs of one plan by name."""

    def __init__(self, jobs: Sequence[Job], memory: "QueueEntries") -> None:
        self.jobs = {job.name: job for job in jobs}
        self._memory = memory
        self.running = [memory.entry(job) for job in jobs if job.running is not None]

    def entry(self, name: str) -> QueueEntry:
        """The queue entry of this name: one for each job."""
        return self._memory.entry(self.jobs[name])

    def best_speed(self, job: Job) -> float:
        """Speed at the proportional share on the GPU type where the job is fastest; 0 where it is not known."""
        return self._memory.entry(job).kind.best_speed(self._memory.pools)

    def speeds(self, job: Job) -> Mapping[str, float]:
        """Speed at the proportional share on each GPU type that could hold the job; 0 where it is not known."""
        entry = self.entry(job.name)
        return entry.kind.share_speeds(self._memory.pools, on_one_node=entry.placement == "consolidate")

    def speed_parts(self, job: Job) -> Mapping[str, tuple[float, float]]:
        """By GPU type, what the job has of its speed on the fewest nodes and spread (`QueueEntry.speed_parts`)."""
        return self.entry(job.name).speed_parts(self._memory.pools)

    def line(
        self,
        ranking: Ranking,
        *,
        without: Container[str],
        settling: Container[str] = (),
        least_run_s: Callable[[Job], float] = lambda _: 0.0,
        wants_shared: Callable[[Job], frozenset[str] | None] = lambda _: None,
    ) -> SchedulingQueue:
        """The policy's line, without some jobs; those that are `settling` keep their places.

        `least_run_s` is for how long a job would be, once it has started, `wants_shared` as `QueueEntry` has it.
        """
        names = [name for name in ranking.names if name not in without]
        return SchedulingQueue(
            self,
            names,
            preempts=ranking.preempts,
            passes=ranking.passes,
            types=ranking.types,
            lies=ranking.lies,
            settling=settling,
            first=frozenset(ranking.first),
            least_run_s=least_run_s,
            wants_shared=wants_shared,
            by_price=ranking.leaves_idle,
        )


def out_of_reach(entries: Iterable[QueueEntry], mode: Mode) -> dict[str, Allocation]:
    """Fill mode keeps also jobs that run on nodes which are no longer there."""
    if mode != "fill":
        return {}
    running = {entry.name: entry.job.running for entry in entries if entry.held is None}
    return {name: allocation for name, allocation in running.items() if allocation is not None}
