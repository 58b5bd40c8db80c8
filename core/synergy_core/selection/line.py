"""The jobs of a plan as contenders in line.

Most jobs of a long line are never looked at closely: once nothing is left to promise, they wait. So a contender is made
when it is needed: for running jobs at once, for the others when the walk along the line comes to them.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from synergy_core.model.config import Mode
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation, Job, Placement
from synergy_core.policies.queue import Ranking
from synergy_core.selection.contender import Contender


class Contenders(Protocol):
    """Where the contenders of one plan come from (`synergy_core.cache`)."""

    @property
    def pools(self) -> Sequence[Pool]:
        """The nodes, by GPU type."""
        ...

    def contender(self, job: Job) -> Contender:
        """The contender of a job: always the same one."""
        ...


class Line:
    """Contenders, the first in line first."""

    def __init__(
        self,
        roster: "Roster",
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
        self._roster = roster
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
        running = sorted((ranks[one.name], one) for one in roster.running if one.name in ranks)
        for rank, contender in running:
            contender.rank = rank
            contender.stays_for_now = not preempts or contender.name in settling
            self._tell(contender)
        self.running: list[Contender] = [contender for _, contender in running]
        """Those that run, in the order of the line."""

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Contender]:
        for rank, name in enumerate(self._names):
            contender = self._roster.contender(name)
            contender.rank = rank
            self._tell(contender)
            yield contender

    def _tell(self, contender: Contender) -> None:
        """What holds for a job in this plan. One that may not be displaced yet does not move to another type either."""
        contender.goes_first = contender.name in self._first
        contender.least_run_s = self._least_run_s(contender.job)
        contender.wants_shared = self._wants_shared(contender.job)
        contender.kept_off = {}
        contender.pods_matter = False
        contender.types = None if contender.name in self._settling else self._types.get(contender.name)
        contender.lies = {} if contender.name in self._settling else self._lies.get(contender.name, {})
        contender.goes_by_price = self._by_price and contender.types is not None

    def led_by(self, first: Sequence[str]) -> "Line":
        """The line with these at its head, in this order; the others follow as they were."""
        ahead = set(first)
        names = [*first, *(name for name in self._names if name not in ahead)]
        return Line(
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


class Roster:
    """The jobs of one plan by name."""

    def __init__(self, jobs: Sequence[Job], memory: "Contenders") -> None:
        self.jobs = {job.name: job for job in jobs}
        self._memory = memory
        self.running = [memory.contender(job) for job in jobs if job.running is not None]

    def contender(self, name: str) -> Contender:
        """The contender of this name: one for each job."""
        return self._memory.contender(self.jobs[name])

    def best_speed(self, job: Job) -> float:
        """Speed at the proportional share on the GPU type where the job is fastest; 0 where it is not known."""
        return self._memory.contender(job).kind.best_speed(self._memory.pools)

    def speeds(self, job: Job) -> Mapping[str, float]:
        """Speed at the proportional share on each GPU type that could hold the job; 0 where it is not known."""
        contender = self.contender(job.name)
        return contender.kind.share_speeds(self._memory.pools, on_one_node=contender.placement == "consolidate")

    def speed_parts(self, job: Job) -> Mapping[str, tuple[float, float]]:
        """By GPU type, what the job has of its speed on the fewest nodes and spread (`Contender.speed_parts`)."""
        return self.contender(job.name).speed_parts(self._memory.pools)

    def line(
        self,
        ranking: Ranking,
        *,
        without: Container[str],
        settling: Container[str] = (),
        least_run_s: Callable[[Job], float] = lambda _: 0.0,
        wants_shared: Callable[[Job], frozenset[str] | None] = lambda _: None,
    ) -> Line:
        """The policy's line, without some jobs; those that are `settling` keep their places.

        `least_run_s` is for how long a job would be, once it has started, `wants_shared` as `Contender` has it.
        """
        names = [name for name in ranking.names if name not in without]
        return Line(
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


def out_of_reach(contenders: Iterable[Contender], mode: Mode) -> dict[str, Allocation]:
    """Fill mode keeps also jobs that run on nodes which are no longer there."""
    if mode != "fill":
        return {}
    running = {contender.name: contender.job.running for contender in contenders if contender.held is None}
    return {name: allocation for name, allocation in running.items() if allocation is not None}
