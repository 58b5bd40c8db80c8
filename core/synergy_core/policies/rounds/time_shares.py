"""From an allocation matrix to the order of jobs in one round (Gavel, sections 3.2 and 5).

X gives each job a fraction of its time on each GPU type.

1. `turns` decides which shares are due in the round, and the order in which all are served.
2. `algorithm_1` gives GPU types to jobs in that order.
3. Jobs that were given a type come first in the queue, the largest first: they then find their GPUs on few nodes. The
   others follow and may use what is left, on any type on which they have speed.

Where the paper leaves room (figures and proofs: decision 17):

* X is computed anew for each round, and nothing is kept between rounds. A job's time counts from its own arrival: a job
  that came late is not owed what others had before.
* Of several optimal X, one is taken that leaves nothing unused, where the policy can find it.
* f, the fraction of its time that a job has spent on a type, is (time spent + half a round) / (time since arrival + a
  round). With the plain fraction, a job that has not been on a type would be first there however small its X.
* A job of unknown length is taken to need as long again as it has run, at least one round. A job of unknown speed
  counts as equally fast everywhere.
* Under the policies that go by cost, a job runs only where X gives it time. A GPU that is not worth its price idles.
* Placement-sensitive (section 3.1): a job that is slower when spread may have time in two columns of one type, packed
  and spread. f counts the time that it really was spread. A job that finds no room packed gets GPUs that all others
  leave, on any nodes, and moves once there is room. No job moves in order to be spread.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from synergy_core.model.answer import IsolatedTime
from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import Job, Placement
from synergy_core.policies.allocation import ALLOCATION_POLICIES
from synergy_core.policies.allocation.budget import OutOfTimeError
from synergy_core.policies.allocation.problem import UNCONSOLIDATED, WITHIN, Problem
from synergy_core.policies.allocation.programme.point import SolverError
from synergy_core.policies.allocation.solutions import TIMELESS
from synergy_core.policies.queue import Queue, Ranking
from synergy_core.policies.rounds.algorithm_1 import RoundShares, algorithm_1
from synergy_core.policies.rounds.entries import Time, entries_of
from synergy_core.policies.rounds.isolation import entries as entries_of_isolation
from synergy_core.policies.rounds.isolation import isolated_elapsed, progress
from synergy_core.policies.rounds.shares_deadlines import Deadlines, with_deadlines
from synergy_core.policies.rounds.shares_problem import Speeds, check_prices, problem_of
from synergy_core.policies.rounds.tenant_bounds import bounds_of
from synergy_core.policies.rounds.turns import Line, in_turn, is_accounting
from synergy_core.throughput.levels import Tier

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
"""The allocation policies that need nothing beyond a snapshot."""


def allocation_of(policy: str) -> str:
    """Name of the allocation policy behind a policy. `fifo` alone is an order; its matrix has another name."""
    return {"gavel-fifo": "fifo"}.get(policy, policy)


WITH_PAIRS = frozenset({"fifo", *(name for name in NAMES if ALLOCATION_POLICIES[allocation_of(name)].shares)})
"""The policies that can use pairs."""

BY_COST = frozenset({"min-cost", "min-cost-slo"})
"""The policies that need prices, and leave a GPU idle rather than pay too much for it."""

_FOLLOWS = frozenset({"makespan"})
"""The policies whose X gives a job more time the less it has got done."""

BY_ISOLATED_TIME = frozenset({"finish-time-fairness"})
"""The policies that compare a job with its progress in isolation. Each plan enters that progress (`isolation`), so what
they decide depends on the plans before."""


def ranked_by(policy: str) -> Callable[[Queue], Ranking]:
    """The ordering function of an allocation policy. Raises LookupError for an unknown one."""
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
    problem = problem_of(queue, able, speeds, free, timeless=policy in TIMELESS)
    isolated: tuple[IsolatedTime, ...] = ()
    if queue.tree:
        bounds = bounds_of(queue.tree, able, speeds, free, filter(_keeps_its_gpus, queue.jobs))
        problem = replace(problem, bounds=bounds)
    if policy in BY_ISOLATED_TIME:
        done = progress(able, [speeds[job.name] for job in able])
        problem = replace(problem, isolated_elapsed=isolated_elapsed(able, done, problem))
        isolated = entries_of_isolation(able, done, problem.isolated_elapsed)
    found = _round_shares(policy, queue, able, problem)
    entries, order = found.entries, found.order
    given, together = algorithm_1(found, able, free, queue, fills=queue.aware and policy not in BY_COST)
    placements, nearness = _placements(queue, found, able, given)
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
        nearness=nearness,
        divides=True,
        leaves_idle=policy in BY_COST,
        colliding=found.colliding,
        together=together,
        shares_from=found.shares_from,
        isolated=isolated,
    )


def _keeps_its_gpus(job: Job) -> bool:
    """The job is measured, or runs to its end on what it has: X does not say what it gets."""
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
    """By job; jobs of one class share one mapping."""
    known: dict[tuple[object, ...], tuple[Speeds, Speeds]] = {}
    found = {}
    for job in jobs:
        speeds = queue.speeds(job)
        most = {one: min(gpus, queue.tree.most(job, one)) for one, gpus in free.items()} if queue.tree else free
        key = (id(speeds), job.gpus, *(most.values() if queue.tree else ()))
        if key not in known:
            known[key] = speeds, _usable(speeds, job, most)  # kept with it, so that no other comes to have its id
        found[job.name] = known[key][1]
    return found


def _round_shares(policy: str, queue: Queue, jobs: Sequence[Job], problem: Problem) -> RoundShares:
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
    derived = queue.solutions.derived
    time = derived.of("time", (id(problem), id(x)), lambda: Time(jobs, problem, x), held=(problem, x))
    entries = entries_of(queue, jobs, problem, time, pressed, accounting=is_accounting(number) and not follows)
    line = None
    if not len(problem.pairs):
        line = derived.of("line", id(time), lambda: Line(entries.shares), held=time)
    order = in_turn(entries.shares, number, follows=follows, line=line)
    return RoundShares(problem, entries, order, deadlines.colliding, shares_from)


_Wishes = tuple[dict[str, dict[str, Placement]], dict[str, dict[str, Tier]]]
"""`Ranking.placements` and `Ranking.nearness`."""


def _placements(queue: Queue, found: RoundShares, jobs: Sequence[Job], given: Mapping[int, int]) -> _Wishes:
    """On the type that a job was given, as its share says; on others the fastest way."""
    problem, types = found.problem, len(found.problem.types)
    placements: dict[str, dict[str, Placement]] = {}
    nearness: dict[str, dict[str, Tier]] = {}
    for index in np.flatnonzero(problem.throughputs[:, types:].any(axis=1)).tolist():
        job = jobs[index]
        for near, columns in _ways(problem, index).items():
            column = given.get(index)
            if column not in columns:
                column = max(columns, key=lambda one: (problem.throughputs[index, one], -one))
            gpu_type = problem.types[near]
            spread = problem.columns[column].endswith(UNCONSOLIDATED)
            placements.setdefault(job.name, {})[gpu_type] = "spread" if spread else "pack"
            tiers = queue.tiers(job).get(gpu_type)
            if tiers and not spread:
                depth = int(problem.columns[column].rpartition(WITHIN)[2]) if column >= types else tiers[0].depth
                nearness.setdefault(job.name, {})[gpu_type] = next(one for one in tiers if one.depth == depth)
    return placements, nearness


def _ways(problem: Problem, job: int) -> dict[int, tuple[int, ...]]:
    """The columns of each type on which the placement of a job matters."""
    types = len(problem.types)
    further = (types + np.flatnonzero(problem.throughputs[job, types:])).tolist()
    near = dict.fromkeys(problem.column_type[further].tolist())
    return {type_: (type_, *(one for one in further if problem.column_type[one] == type_)) for type_ in near}


class _Types(Mapping[str, tuple[str, ...]]):
    """`Ranking.types`, computed on demand: most jobs of a long queue are never asked for.

    For a job that was given a type, that type. For others, the types on which they have time, by priority, then the
    rest, the fastest first.
    """

    def __init__(
        self, found: RoundShares, jobs: Sequence[Job], given: Mapping[int, int], others: Mapping[str, Speeds]
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
