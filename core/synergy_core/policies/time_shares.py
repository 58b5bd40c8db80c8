"""From an allocation matrix to who runs in this round (Gavel, sections 3.2 and 5, Algorithm 1).

X says what fraction of the time each job is to spend on each GPU type. Whose turn it is in a round `turns` says: by a
timetable that gives every share its part, now and then by X / f, f being the fraction of the time since its arrival
that a job has spent on the type. In that order each job is given its type if enough of its GPUs are left, and passed
over if not; then its entries for other types fall away. Those who are given a type stand ahead, the largest first, so
that they find their GPUs on few nodes; the others follow and get what is left, on any type on which they have speed.

Where the paper leaves room:

* X is computed anew for each round from the state as it is, so nothing has to be kept between rounds. The time that
  counts is a job's own since it arrived: a job that came late is not owed what others had before.
* Of the X that are optimal one is taken that leaves nothing which somebody could use, where the policy can find it.
* f = (time spent + half a round) / (time since arrival + a round). With f = time spent / time since arrival a job that
  has not been on a type would come first there however small its X.
* X / f alone, which the paper serves by, loses much where X changes often: jobs go without what X gives them now for
  what they had under an X that is no more, and one with a small X that is owed half a round takes it from one that is
  to run all the time, which nothing makes up for. Hence the timetable (docs/decisions/0017 has the figures).
* No job starves. Among jobs of one GPU each, one with the share x on a type runs nowhere in at most 2.2 / x + 3 rounds
  on end: of N marks that lie the golden section apart two neighbours are at most 1.9 / N apart, so that one of 2 / x
  marks lies on the share; whoever is due has its GPU, or another; and one round in 16 settles accounts instead.
* In general, of jobs that arrived together, with X unchanged, one with the share x on a type of W GPUs, g of which it
  takes, is given nothing in at most

      (W (s + 1/2) / x + G / 2) / (W - g + 1)

  settling rounds before its round number s + 1 on that type, G being the GPUs that all others with a share there take.
  For, in rounds, another one n stands ahead only while (s_n + 1/2) / X_n <= (s + 1/2) / x, that is for
  X_n (s + 1/2) / x + 1/2 rounds at most; the GPUs of all these rounds are at most W (s + 1/2) / x + G / 2, since the
  sum of g_n X_n is at most W; and a round in which the job is passed over there takes W - g + 1 of them at least. Under
  `max-throughput`, `sjf`, `fifo` and the like X may be 0 as long as others are there: those policies promise nothing.
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
* A pair is given a GPU only as long as there are GPUs left that the two could share.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from zlib import crc32

import numpy as np

from synergy_core.allocation import ALLOCATION_POLICIES
from synergy_core.allocation.budget import OutOfTimeError
from synergy_core.allocation.problem import Floats, Problem
from synergy_core.model import Job, SharesFrom
from synergy_core.policies.queue import Queue, Ranking
from synergy_core.policies.shares_deadlines import Deadlines, with_deadlines
from synergy_core.policies.shares_problem import Speeds, check_prices, problem_of
from synergy_core.policies.turns import in_turn, settles

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

_LEAST = 1e-6
"""A share of the time below this is a solver's rounding."""


_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A job on a GPU type."""

    priority: float
    share: float
    job: Job
    gpu_type: str
    pressed: bool
    ways: tuple[tuple[Job | None, float], ...]
    """Alone (None) and with partners: of its share, the part of each."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the job, and of its partner where there is but one way."""
        partner = self.ways[0][0] if len(self.ways) == 1 else None
        return (self.job.name,) if partner is None else (self.job.name, partner.name)


def ranked_by(policy: str) -> Callable[[Queue], Ranking]:
    """The line of an allocation policy."""
    allocation = allocation_of(policy)
    if allocation not in ALLOCATION_POLICIES:
        raise LookupError(policy)
    return lambda queue: _rank(allocation, queue)


def _rank(policy: str, queue: Queue) -> Ranking:
    by_arrival = sorted(queue.jobs, key=lambda job: (job.arrival_s, job.name))
    in_play = [job for job in by_arrival if not _keeps_its_gpus(job)]
    free = _free(queue)
    speeds = {job.name: _usable(queue.speeds(job), job, free) for job in in_play}
    able = [job for job in in_play if speeds[job.name]]
    if policy in BY_COST:
        check_prices(queue, policy)
    found = _found(policy, queue, able, problem_of(queue, able, speeds, free)) if able else _Found()
    entries = found.entries
    given, together = _algorithm_1(entries, free, queue)
    place = {name: index for index, entry in reversed(list(enumerate(entries))) for name in entry.names}
    ahead = sorted((job for job in able if job.name in given), key=lambda job: (-job.gpus, place[job.name]))
    behind = sorted(by_arrival, key=lambda job: place.get(job.name, len(entries)))
    others = {} if policy in BY_COST else speeds
    wanted: dict[str, list[str]] = {}
    for entry in entries:
        if entry.ways[0][0] is None:
            wanted.setdefault(entry.job.name, []).append(entry.gpu_type)
    types = {job.name: _in_order(wanted.get(job.name, ()), others.get(job.name, {})) for job in able}
    types |= {name: (gpu_type,) for name, gpu_type in given.items()}
    return Ranking(
        tuple(dict.fromkeys(job.name for job in [*ahead, *behind])),
        types=types,
        leaves_idle=policy in BY_COST,
        colliding=found.colliding,
        together=together,
        shares_from=found.shares_from,
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


@dataclass(frozen=True, slots=True)
class _Found:
    """What the policy says."""

    entries: Sequence[_Entry] = ()
    """Jobs on types that X gives them time on, in the order in which this round serves them."""
    colliding: tuple[str, ...] = ()
    shares_from: SharesFrom = ""


def _found(policy: str, queue: Queue, jobs: Sequence[Job], problem: Problem) -> _Found:
    deadlines = Deadlines()
    x: Floats
    try:
        if policy == "min-cost-slo":
            problem, deadlines = with_deadlines(queue, jobs, problem, queue.solutions.budget)
        x, shares_from = queue.solutions.shares(problem, policy, aware=queue.aware)
    except OutOfTimeError:
        x, shares_from = queue.solutions.stand_in(problem)
    number = round(queue.now / queue.round_s)
    ways = _ways(jobs, problem, x)
    shares = {key: sum(share for _, share in each) for key, each in ways.items()}
    entries = []
    for (index, gpu_type), each in ways.items():
        job, pressed = jobs[index], jobs[index].name in deadlines.pressed
        owed = _priority(queue, job, gpu_type, shares[index, gpu_type])
        if queue.pairs is None or settles(number):
            whole = shares[index, gpu_type]
            entries.append(
                _Entry(
                    owed, whole, job, gpu_type, pressed, tuple((jobs[o] if o >= 0 else None, part) for o, part in each)
                )
            )
            continue
        for other, share in each:
            if other < 0:
                entries.append(_Entry(owed, share, job, gpu_type, pressed, ((None, share),)))
            elif index < other:
                partner = jobs[other]
                theirs = _priority(queue, partner, gpu_type, shares[other, gpu_type])
                pressed = pressed or partner.name in deadlines.pressed
                entries.append(_Entry(0.5 * (owed + theirs), share, job, gpu_type, pressed, ((partner, share),)))
    in_order = in_turn(entries, number)
    return _Found(in_order, deadlines.colliding, shares_from)


def _priority(queue: Queue, job: Job, gpu_type: str, share: float) -> float:
    spent = job.received_s.get(gpu_type, 0.0) + 0.5 * queue.round_s
    return share * (max(0.0, queue.now - job.arrival_s) + queue.round_s) / spent


def _ways(jobs: Sequence[Job], problem: Problem, x: Floats) -> Mapping[tuple[int, str], list[tuple[int, float]]]:
    """By job and type what part of the time X gives alone (-1) and beside which other job; alone comes first."""
    found: dict[tuple[int, str], list[tuple[int, float]]] = {}
    for row, column in np.argwhere(x > _LEAST).tolist():
        share, gpu_type = float(x[row, column]), problem.types[column]
        if row < len(jobs):
            found.setdefault((row, gpu_type), []).append((-1, share))
        else:
            one, other = problem.pairs[row - len(jobs)].tolist()
            found.setdefault((one, gpu_type), []).append((other, share))
            found.setdefault((other, gpu_type), []).append((one, share))
    return found


def _algorithm_1(
    entries: Sequence[_Entry], free: Mapping[str, int], queue: Queue
) -> tuple[dict[str, str], tuple[tuple[str, tuple[str, ...]], ...]]:
    """GPU type of each job that is given one, and those of them that are to have one GPU (`Ranking.together`)."""
    left, shared, given = dict(free), dict.fromkeys(free, 0), dict[str, str]()
    together = []
    for entry in entries:
        job, gpu_type = entry.job, entry.gpu_type
        if job.name in given or job.gpus > left[gpu_type]:
            continue
        possible = [
            (partner, share)
            for partner, share in entry.ways
            if partner is None or (partner.name not in given and _can_share(queue, (job, partner), gpu_type, shared))
        ]
        if not possible:
            continue
        partner = _drawn(job, possible, queue)
        given[job.name] = gpu_type
        left[gpu_type] -= job.gpus
        if partner is not None:
            given[partner.name] = gpu_type
            shared[gpu_type] += 1
            together.append((gpu_type, (job.name, partner.name)))
    return given, tuple(together)


def _can_share(queue: Queue, two: tuple[Job, Job], gpu_type: str, shared: Mapping[str, int]) -> bool:
    return queue.pairs is not None and shared[gpu_type] < queue.pairs.gpus(two, gpu_type)


def _drawn(job: Job, possible: Sequence[tuple[Job | None, float]], queue: Queue) -> Job | None:
    """The partner of this round, or None for nobody: in the long run each as often as its share says."""
    if len(possible) == 1:
        return possible[0][0]
    begun = crc32(job.name.encode()) / 2**32
    point = (begun + _GOLDEN * floor(queue.now / queue.round_s)) % 1.0 * sum(share for _, share in possible)
    for partner, share in possible:
        point -= share
        if point < 0.0:
            return partner
    return possible[-1][0]


def _in_order(wanted: Sequence[str], speeds: Speeds) -> tuple[str, ...]:
    """The types of a job that was given none: those it has time on by priority, then the others, the fastest first."""
    return tuple(dict.fromkeys([*wanted, *sorted(speeds, key=lambda gpu_type: (-speeds[gpu_type], gpu_type))]))
