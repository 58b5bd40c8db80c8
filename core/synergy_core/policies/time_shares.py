"""From an allocation matrix to who runs in this round (Gavel, sections 3.2 and 5, Algorithm 1).

X says what fraction of the time each job is to spend on each GPU type. A job's priority on a type is X / f, f being
the fraction of the time since its arrival that it has spent there. Highest priority first, each job is given that type
if enough of its GPUs are left, and passed over if not; then its entries for other types fall away. Those who are given
a type stand ahead, the largest first, so that they find their GPUs on few nodes; the others follow by their priorities
and get what is left, on any type on which they have speed.

Where the paper leaves room:

* X is computed anew for each round from the state as it is, so nothing has to be kept between rounds. The time that
  counts is a job's own since it arrived: a job that came late is not owed what others had before.
* Of the X that are optimal one is taken that leaves nothing which somebody could use, where the policy can find it.
* f = (time spent + half a round) / (time since arrival + a round). With f = time spent / time since arrival a job that
  has not been on a type would come first there however small its X, and short jobs would spend much of their lives on
  types meant for a hundredth of it. With half a round counted, rounds are dealt out by Sainte-Lague's method, the one
  that rounds shares without favour: a round is given when at least about half of one is owed.
* Among equal priorities the larger X comes first, then the earlier arrival, then the name.
* No job starves: while it waits and its X is above 0, its priority on a type grows with time without bound, 2 X / R for
  each second of a job that has not been there (R seconds a round), whereas that of a job which runs all the time falls
  towards its X, which is at most 1. So after (1 / X) rounds at most it is ahead of all that have what X says.
* Jobs of unknown length are taken to need as long again as they have run, a round at least.
* A job without any known speed counts as equally fast everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synergy_core.allocation import ALLOCATION_POLICIES, solve
from synergy_core.allocation.problem import Floats, Problem, Tenant
from synergy_core.allocation.shares import isolated_throughput
from synergy_core.model import Job
from synergy_core.policies.queue import Queue, Ranking

Speeds = Mapping[str, float]
"""Steps per second by GPU type; above 0."""

NAMES = (
    "allox",
    "finish-time-fairness",
    "gandiva",
    "hierarchical",
    "isolated",
    "makespan",
    "max-min-fairness",
    "max-min-fairness-water-filling",
    "max-throughput",
    "proportional",
    "sjf",
)
"""The allocation policies that need nothing but what a snapshot tells."""

_LEAST = 1e-6
"""A share of the time below this is a solver's rounding."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A job on a GPU type; the least comes first."""

    priority: float
    share: float
    job: Job
    gpu_type: str

    @property
    def order(self) -> tuple[float, float, float, str, str]:
        return (-self.priority, -self.share, self.job.arrival_s, self.job.name, self.gpu_type)


def ranked_by(policy: str) -> Callable[[Queue], Ranking]:
    """The line of an allocation policy."""
    if policy not in ALLOCATION_POLICIES:
        raise LookupError(policy)
    return lambda queue: _rank(policy, queue)


def _rank(policy: str, queue: Queue) -> Ranking:
    by_arrival = sorted(queue.jobs, key=lambda job: (job.arrival_s, job.name))
    in_play = [job for job in by_arrival if not _keeps_its_gpus(job)]
    free = _free(queue)
    speeds = {job.name: _usable(queue.speeds(job), job, free) for job in in_play}
    able = [job for job in in_play if speeds[job.name]]
    entries = _entries(policy, queue, able, speeds, free) if able else []
    given = _algorithm_1(entries, free)
    place = {entry.job.name: index for index, entry in reversed(list(enumerate(entries)))}
    ahead = sorted((job for job in able if job.name in given), key=lambda job: (-job.gpus, place[job.name]))
    behind = sorted(by_arrival, key=lambda job: place.get(job.name, len(entries)))
    types = {job.name: _in_order(job, entries, speeds[job.name]) for job in able}
    types |= {name: (gpu_type,) for name, gpu_type in given.items()}
    return Ranking(tuple(dict.fromkeys(job.name for job in [*ahead, *behind])), types=types)


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


def _entries(
    policy: str, queue: Queue, jobs: Sequence[Job], speeds: Mapping[str, Speeds], free: Mapping[str, int]
) -> list[_Entry]:
    """Jobs on types that X gives them time on, by priority."""
    problem = _problem(queue, jobs, speeds, free)
    try:
        x = solve(problem, policy, aware=queue.aware, efficient=True).x
    except ArithmeticError:  # the solver's numbers failed it: everybody's own part serves until the next round
        x = solve(problem, "isolated").x
    entries = [
        _Entry(_priority(queue, job, gpu_type, share), share, job, gpu_type)
        for job, shares in zip(jobs, x.tolist(), strict=True)
        for gpu_type, share in zip(problem.types, shares, strict=True)
        if share > _LEAST
    ]
    return sorted(entries, key=lambda entry: entry.order)


def _priority(queue: Queue, job: Job, gpu_type: str, share: float) -> float:
    spent = job.received_s.get(gpu_type, 0.0) + 0.5 * queue.round_s
    return share * (max(0.0, queue.now - job.arrival_s) + queue.round_s) / spent


def _algorithm_1(entries: Sequence[_Entry], free: Mapping[str, int]) -> dict[str, str]:
    """GPU type of each job that is given one."""
    left, given = dict(free), dict[str, str]()
    for entry in entries:
        if entry.job.name not in given and entry.job.gpus <= left[entry.gpu_type]:
            given[entry.job.name] = entry.gpu_type
            left[entry.gpu_type] -= entry.job.gpus
    return given


def _in_order(job: Job, entries: Sequence[_Entry], speeds: Speeds) -> tuple[str, ...]:
    """The types of a job that was given none: those it has time on by priority, then the others, the fastest first."""
    wanted = [entry.gpu_type for entry in entries if entry.job is job]
    return tuple(dict.fromkeys([*wanted, *sorted(speeds, key=lambda gpu_type: (-speeds[gpu_type], gpu_type))]))


def _problem(queue: Queue, jobs: Sequence[Job], speeds: Mapping[str, Speeds], free: Mapping[str, int]) -> Problem:
    """The jobs at their GPU-proportional shares, on what is not kept from them."""
    types = tuple(sorted(free))
    throughputs = np.array([[speeds[job.name].get(gpu_type, 0.0) for gpu_type in types] for job in jobs])
    names = sorted({job.tenant for job in jobs if job.tenant})
    remaining = np.array([_steps(queue, job, max(speeds[job.name].values())) for job in jobs])
    problem = Problem(
        types=types,
        workers=np.array([free[gpu_type] for gpu_type in types], dtype=float),
        columns=types,
        column_type=np.arange(len(types)),
        jobs=tuple(job.name for job in jobs),
        throughputs=throughputs,
        scale=np.array([job.gpus for job in jobs], dtype=float),
        weight=np.array([job.weight for job in jobs], dtype=float),
        steps=remaining,
        elapsed=_of(jobs, lambda job: max(0.0, queue.now - job.arrival_s)),
        isolated_elapsed=np.zeros(len(jobs)),
        arrival=_of(jobs, lambda job: job.arrival_s),
        slo=np.full(len(jobs), np.inf),
        tenant=np.array([names.index(job.tenant) if job.tenant else -1 for job in jobs], dtype=np.int64),
        cost=np.full(len(types), np.nan),
        pairs=np.empty((0, 2), dtype=np.int64),
        pair_throughputs=np.empty((0, len(types), 2)),
        tenants=tuple(Tenant(name) for name in names),
    )
    done = _of(jobs, lambda job: job.steps_done)
    return replace(problem, isolated_elapsed=done / isolated_throughput(problem))


def _of(jobs: Sequence[Job], value: Callable[[Job], float]) -> Floats:
    return np.array([value(job) for job in jobs], dtype=float)


def _steps(queue: Queue, job: Job, speed: float) -> float:
    if job.steps_total is not None:
        return max(1.0, float(job.steps_total - job.steps_done))
    return speed * max(sum(job.received_s.values()), queue.round_s)
