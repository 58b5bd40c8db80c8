"""From an allocation matrix to who runs in this round (Gavel, sections 3.2 and 5, Algorithm 1).

X says what fraction of the time each job is to spend on each GPU type. Whose turn it is in a round `turns` says: by a
timetable that gives every share its part; where not all fit who are due, and now and then altogether, by X / f, f being
the fraction of the time since its arrival that a job has spent on the type. In that order each job is given its type if
enough of its GPUs are left, and passed over if not; then its entries for other types fall away. Who would be faster on
another type that X gives it too, and of which enough GPUs would stay idle, is moved there, and what it leaves is given
on (not so by a policy that is not to see that types differ, nor by one that goes by cost). Those who are given a type
stand ahead, the largest first, so that they find their GPUs on few nodes; the others follow and get what is left, on
any type on which they have speed.

Where the paper leaves room:

* X is computed anew for each round from the state as it is, so nothing has to be kept between rounds. The time that
  counts is a job's own since it arrived: a job that came late is not owed what others had before.
* Of the X that are optimal one is taken that leaves nothing which somebody could use, where the policy can find it.
* f = (time spent + half a round) / (time since arrival + a round). With f = time spent / time since arrival a job that
  has not been on a type would come first there however small its X.
* X / f alone, which the paper serves by, loses much where X changes often: jobs go without what X gives them now for
  what they had under an X that is no more. Hence the timetable (docs/decisions/0017 has the figures).
* X may be more than rounds can hold: a job of eight GPUs for 5/8 of the time beside three of one GPU that run all the
  time on one node of eight. X / f among who is due then leaves all of them the same part of their shares.
* No job starves. Among jobs of one GPU each, one with the share x on a type runs nowhere in at most 2.2 / x + 3 rounds
  on end: of N marks that lie the golden section apart two neighbours are at most 1.9 / N apart, so that one of 2 / x
  marks lies on its time; whoever is due has its GPU, or another; and one round in 16 settles accounts instead.
* In general, of jobs that arrived together, with X unchanged, one with the share x on a type of W GPUs, g of which it
  takes, is given nothing in at most

      (W (s + 1/2) / x + G / 2) / (W - g + 1)

  settling rounds before its round number s + 1 on that type, G being the GPUs that all others with a share there take.
  For, in rounds, another one n stands ahead only while (s_n + 1/2) / X_n <= (s + 1/2) / x, that is for
  X_n (s + 1/2) / x + 1/2 rounds at most; the GPUs of all these rounds are at most W (s + 1/2) / x + G / 2, since the
  sum of g_n X_n is at most W; and a round in which the job is passed over there takes W - g + 1 of them at least. Under
  `max-throughput`, `sjf`, `fifo` and the like X may be 0 as long as others are there: those policies promise nothing.
  Under `makespan`, which settles nothing, X rises with each round in which a job is passed over, to all of the time.
* Jobs of unknown length are taken to need as long again as they have run, a round at least.
* A job without any known speed counts as equally fast everywhere.
* Under the policies that go by cost a job runs only where X gives it time: a GPU that is not worth its price stays
  idle.
* With pairs in X the timetable is one of rows: pairs have their turns like jobs alone. In a settling round what is
  ranked is each job on each type, by all the time that X gives it there, alone and in pairs, over all that it has had
  there, shared or not: nothing has to be remembered of pairs. Its turn come, a job is given one of its combinations
  that are still possible, each as often as X says: the next point of a sequence that fills the interval evenly
  (multiples of the golden ratio, begun elsewhere for each job) is looked up in the sums of their shares. Its partner is
  drawn along.
* Placement-sensitive (section 3.1), a job whose speed hangs on where its GPUs lie may have time in two columns of one
  type, on the fewest nodes and spread. f counts the time that it really lay so. Its turn says how it is to lie. Who
  finds no room on the fewest nodes gets the GPUs that all others leave, wherever they are, and moves once there is
  room; nobody moves to be spread.
* A pair is given a GPU only as long as there are GPUs left that the two could share.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from operator import attrgetter
from zlib import crc32

import numpy as np

from synergy_core.model.answer import SharesFrom
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job, Placement
from synergy_core.policies.allocation import ALLOCATION_POLICIES
from synergy_core.policies.allocation.budget import OutOfTimeError
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme.programme import SolverError
from synergy_core.policies.queue import Queue, Ranking
from synergy_core.policies.rounds.entries import Entries, Ways, entries_of
from synergy_core.policies.rounds.isolation import entries as entries_of_isolation
from synergy_core.policies.rounds.isolation import isolated_elapsed, progress
from synergy_core.policies.rounds.shares_deadlines import Deadlines, with_deadlines
from synergy_core.policies.rounds.shares_problem import Speeds, check_prices, problem_of
from synergy_core.policies.rounds.turns import in_turn, settles

NAMES = (
    "allox",
    "finish-time-fairness",
    "gandiva",
    "gavel-fifo",
    "hierarchical",
    "isolated",
    "makespan",
    "max-min-fairness",
    "max-min-fairness-water-filling",
    "max-throughput",
    "min-cost",
    "min-cost-slo",
    "proportional",
    "sjf",
)
"""The allocation policies that need nothing but what a snapshot tells."""


def allocation_of(policy: str) -> str:
    """Name of the allocation policy behind a policy: `fifo` alone is a line, its matrix goes by another name."""
    return {"gavel-fifo": "fifo"}.get(policy, policy)


WITH_PAIRS = frozenset({"fifo", *(name for name in NAMES if ALLOCATION_POLICIES[allocation_of(name)].shares)})
"""The policies that can make use of pairs."""

BY_COST = frozenset({"min-cost", "min-cost-slo"})
"""Those that need prices, and rather leave a GPU idle than pay for it."""

_FOLLOWS = frozenset({"makespan"})
"""Those whose X follows what jobs have had: the less a job has got done, the more time it is given."""

_KEEPS_ACCOUNT = frozenset({"finish-time-fairness"})
"""Those that measure a job by what its progress would have taken in isolation (`isolation`)."""

_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


def ranked_by(policy: str) -> Callable[[Queue], Ranking]:
    """The line of an allocation policy."""
    allocation = allocation_of(policy)
    if allocation not in ALLOCATION_POLICIES:
        raise LookupError(policy)
    return lambda queue: _rank(allocation, queue)


def _rank(policy: str, queue: Queue) -> Ranking:
    by_arrival = sorted(queue.jobs, key=attrgetter("arrival_s", "name"))
    free = _free(queue)
    speeds = _all_usable(queue, [job for job in by_arrival if not _keeps_its_gpus(job)], free)
    able = [job for job in by_arrival if speeds.get(job.name)]
    if policy in BY_COST:
        check_prices(queue, policy)
    if not able:
        return Ranking(tuple([job.name for job in by_arrival]), leaves_idle=policy in BY_COST)
    problem = problem_of(queue, able, speeds, free)
    done = progress(able, [speeds[job.name] for job in able])
    problem = replace(problem, isolated_elapsed=isolated_elapsed(able, done, problem))
    found = _found(policy, queue, able, problem)
    entries, order = found.entries, found.order
    given, together = _algorithm_1(found, able, free, queue, fills=queue.aware and policy not in BY_COST)
    placements = _placements(found, able, given)
    place = np.full(len(able), len(order))
    np.minimum.at(place, entries.job[order], np.arange(len(order)))
    paired = np.flatnonzero(entries.partner[order] >= 0)
    np.minimum.at(place, entries.partner[order[paired]], paired)
    ahead = sorted(given, key=lambda index: (-able[index].gpus, place[index], index))
    places = dict(zip([job.name for job in able], place.tolist(), strict=True))
    behind = sorted(by_arrival, key=lambda job: places.get(job.name, len(order)))
    return Ranking(
        tuple(dict.fromkeys([*[able[index].name for index in ahead], *[job.name for job in behind]])),
        types=_Types(found, able, given, {} if policy in BY_COST else speeds),
        placements=placements,
        leaves_idle=policy in BY_COST,
        colliding=found.colliding,
        together=together,
        shares_from=found.shares_from,
        isolated=entries_of_isolation(able, done, problem.isolated_elapsed) if policy in _KEEPS_ACCOUNT else (),
    )


def _keeps_its_gpus(job: Job) -> bool:
    """Whether it is measured, or runs to its end on what it has: then X does not say what it gets."""
    return job.purpose == "profile" or (job.running is not None and not job.preemptible)


def _free(queue: Queue) -> dict[str, int]:
    """GPUs by type, without those that jobs keep."""
    free = {gpu_type: gpus for gpu_type, gpus in queue.gpus_of.items() if gpus > 0}
    for job in queue.jobs:
        if _keeps_its_gpus(job) and job.running is not None and job.running.gpu_type in free:
            free[job.running.gpu_type] = max(0, free[job.running.gpu_type] - job.gpus)
    return free


def _usable(speeds: Speeds, job: Job, free: Mapping[str, int]) -> Speeds:
    """Speeds on the types that have enough GPUs for the job."""
    fitting = {gpu_type: speed for gpu_type, speed in speeds.items() if free.get(gpu_type, 0) >= job.gpus}
    known = {gpu_type: speed for gpu_type, speed in fitting.items() if speed > 0.0}
    return known or (dict.fromkeys(fitting, 1.0) if not any(speeds.values()) else {})


def _all_usable(queue: Queue, jobs: Sequence[Job], free: Mapping[str, int]) -> dict[str, Speeds]:
    """By job; jobs of one kind have one mapping."""
    known: dict[tuple[int, int], tuple[Speeds, Speeds]] = {}
    found = {}
    for job in jobs:
        speeds = queue.speeds(job)
        key = id(speeds), job.gpus
        if key not in known:
            known[key] = speeds, _usable(speeds, job, free)  # kept with it, so that no other comes to have its id
        found[job.name] = known[key][1]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What the policy says."""

    problem: Problem
    entries: Entries
    order: Ints
    """Entries in the order in which this round serves them."""
    colliding: tuple[str, ...]
    shares_from: SharesFrom

    def gpu_type(self, column: int) -> str:
        """The type of a column."""
        return self.problem.types[int(self.problem.column_type[column])]


def _found(policy: str, queue: Queue, jobs: Sequence[Job], problem: Problem) -> _Found:
    deadlines = Deadlines()
    x: Floats
    try:
        if policy == "min-cost-slo":
            problem, deadlines = with_deadlines(queue, jobs, problem, queue.solutions.budget)
        x, shares_from = queue.solutions.shares(problem, policy, aware=queue.aware)
    except (OutOfTimeError, SolverError):
        x, shares_from = queue.solutions.stand_in(problem)
    number = round(queue.now / queue.round_s)
    pressed = np.array([job.name in deadlines.pressed for job in jobs], dtype=bool)
    follows = policy in _FOLLOWS
    entries = entries_of(queue, jobs, problem, x, pressed, settling=settles(number) and not follows)
    order = in_turn(entries.shares, number, follows=follows)
    return _Found(problem, entries, order, deadlines.colliding, shares_from)


def _algorithm_1(
    found: _Found, jobs: Sequence[Job], free: Mapping[str, int], queue: Queue, *, fills: bool
) -> tuple[dict[int, int], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Column of each job (index) that is given one, and those of them that are to have one GPU (`Ranking.together`).

    `fills`: no GPU idles that would serve a job faster on a type that X gives it.
    """
    given = _Given(found, jobs, free, queue)
    given.serve()
    while fills and given.move_up():
        given.serve()
    return given.column, tuple(given.together)


class _Given:
    """Who is given which column in a round (Algorithm 1)."""

    def __init__(self, found: _Found, jobs: Sequence[Job], free: Mapping[str, int], queue: Queue) -> None:
        self.column: dict[int, int] = {}
        """By job (index)."""
        self.together: list[tuple[str, tuple[str, ...]]] = []
        """Those of them that are to have one GPU (`Ranking.together`)."""
        self._found, self._jobs, self._queue = found, jobs, queue
        self._left, self._shared = dict(free), dict.fromkeys(free, 0)
        self._type_of = [found.gpu_type(column) for column in range(len(found.problem.columns))]
        self._paired: set[int] = set()

    def serve(self) -> None:
        """Give, in the order of the entries, each job that has nothing what is left."""
        entries, left = self._found.entries, self._left
        job_of, column_of = entries.job.tolist(), entries.column.tolist()
        for entry in self._found.order.tolist():
            index, column = job_of[entry], column_of[entry]
            gpu_type = self._type_of[column]
            job = self._jobs[index]
            if index in self.column or job.gpus > left[gpu_type]:
                continue
            possible = [
                (other, share)
                for other, share in entries.ways(entry)
                if other < 0 or (other not in self.column and self._can_share((job, self._jobs[other]), gpu_type))
            ]
            if not possible:
                continue
            partner = _drawn(job, possible, self._queue)
            self.column[index] = column
            left[gpu_type] -= job.gpus
            if partner >= 0:
                self.column[partner] = column
                self._shared[gpu_type] += 1
                self._paired |= {index, partner}
                self.together.append((gpu_type, (job.name, self._jobs[partner].name)))
            if not any(left.values()):
                break

    def move_up(self) -> bool:
        """Move who runs alone to a faster type that X gives it too and that has GPUs left; whether anybody moved."""
        entries, left, speed = self._found.entries, self._left, self._found.problem.throughputs
        if not any(left.values()):
            return False
        alone = self._found.order[entries.alone[self._found.order]]
        moved = False
        for index, column in zip(entries.job[alone].tolist(), entries.column[alone].tolist(), strict=True):
            now, gpus = self.column.get(index), self._jobs[index].gpus
            if now is None or index in self._paired or gpus > left[self._type_of[column]]:
                continue
            if self._type_of[now] != self._type_of[column] and speed[index, column] > speed[index, now]:
                left[self._type_of[now]] += gpus
                left[self._type_of[column]] -= gpus
                self.column[index] = column
                moved = True
        return moved

    def _can_share(self, two: tuple[Job, Job], gpu_type: str) -> bool:
        pairs = self._queue.pairs
        return pairs is not None and self._shared[gpu_type] < pairs.gpus(two, gpu_type)


def _placements(found: _Found, jobs: Sequence[Job], given: Mapping[int, int]) -> dict[str, dict[str, Placement]]:
    """`Ranking.placements`: on the type that a job is given as its turn says, on others as it is faster."""
    problem, types = found.problem, len(found.problem.types)
    placements: dict[str, dict[str, Placement]] = {}
    for index, offset in zip(*(found.tolist() for found in np.nonzero(problem.throughputs[:, types:])), strict=True):
        column = types + offset
        near = int(problem.column_type[column])
        spread = problem.throughputs[index, column] > problem.throughputs[index, near]
        if given.get(index) in (near, column):
            spread = given[index] == column
        placements.setdefault(jobs[index].name, {})[problem.types[near]] = "spread" if spread else "pack"
    return placements


def _drawn(job: Job, possible: Ways, queue: Queue) -> int:
    """The partner of this round, or -1 for nobody: in the long run each as often as its share says."""
    if len(possible) == 1:
        return possible[0][0]
    begun = crc32(job.name.encode()) / 2**32
    point = (begun + _GOLDEN * floor(queue.now / queue.round_s)) % 1.0 * sum(share for _, share in possible)
    for partner, share in possible:
        point -= share
        if point < 0.0:
            return partner
    return possible[-1][0]


class _Types(Mapping[str, tuple[str, ...]]):
    """`Ranking.types`, found when it is asked for: most jobs of a long line are not.

    The type that a job is given. Of one that is given none, those it has time on by priority, then the others, the
    fastest first.
    """

    def __init__(
        self, found: _Found, jobs: Sequence[Job], given: Mapping[int, int], others: Mapping[str, Speeds]
    ) -> None:
        self._given = {index: found.gpu_type(column) for index, column in given.items()}
        self._others = others
        self._types = found.problem.types
        self._jobs = {job.name: index for index, job in enumerate(jobs)}
        alone = found.order[found.entries.alone[found.order]]
        self._place = np.full((len(jobs), len(self._types)), len(alone))
        where = found.entries.job[alone], found.entries.shares.type_[alone]
        np.minimum.at(self._place, where, np.arange(len(alone)))
        self._last = len(alone)

    def __getitem__(self, name: str) -> tuple[str, ...]:
        index = self._jobs[name]
        if index in self._given:
            return (self._given[index],)
        place, speeds = self._place[index].tolist(), self._others.get(name, {})
        wanted = sorted((at, gpu_type) for at, gpu_type in zip(place, self._types, strict=True) if at < self._last)
        fastest = sorted(speeds, key=lambda gpu_type: (-speeds[gpu_type], gpu_type))
        return tuple(dict.fromkeys([*(gpu_type for _, gpu_type in wanted), *fastest]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)
