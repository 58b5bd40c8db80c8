"""The jobs of a queue as an allocation problem.

Placement-sensitive (Gavel, section 3.1): a GPU type has two columns, which share its workers, if the speed of some job
depends on placement there. The columns are packed (on the fewest nodes that could hold a job) and spread. Only such
jobs have a speed in both. A job that states its placement, or that has room in one way only, has the speed of that way.
Where nodes have domains, further columns are between them: within one domain of a level (`throughput.levels`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import FieldError, Job, Tenant
from synergy_core.policies.allocation.problem import UNCONSOLIDATED, WITHIN, Problem
from synergy_core.policies.queue import Queue

_MOST_STEPS = 1e15
"""What a job that has no end can have left to do; more is more than a job can train."""

Speeds = Mapping[str, float]
"""Steps per second by GPU type; above 0."""


def problem_of(
    queue: Queue, jobs: Sequence[Job], speeds: Mapping[str, Speeds], free: Mapping[str, int], *, timeless: bool = False
) -> Problem:
    """The jobs at their GPU-proportional shares, on what is not kept from them; without deadlines.

    `timeless`: it says neither how many steps are left nor how long a job has been there.
    """
    types = tuple(sorted(free))
    made = _made_before(queue, jobs, speeds, free, types)
    if timeless:
        return made
    fastest = made.throughputs.max(axis=1).tolist()
    remaining = np.array([_steps(queue, job, speed) for job, speed in zip(jobs, fastest, strict=True)])
    elapsed = np.maximum(0.0, queue.now - made.arrival)
    return replace(made, steps=remaining, elapsed=elapsed, isolated_elapsed=elapsed)


def _made_before(
    queue: Queue, jobs: Sequence[Job], speeds: Mapping[str, Speeds], free: Mapping[str, int], types: tuple[str, ...]
) -> Problem:
    """The timeless problem; the same object as in the last plan where it is the same."""
    if queue.pairs is not None or any(job.gpus > 1 for job in jobs):  # pairs and placements follow from more
        return _made(queue, jobs, speeds, free, types)
    each = {id(one): tuple(one.items()) for one in speeds.values()}  # jobs of one kind have one mapping
    of_jobs = [(job.name, job.arrival_s, job.gpus, job.weight, job.tenant, each[id(speeds[job.name])]) for job in jobs]
    key = (types, [free[gpu_type] for gpu_type in types], of_jobs, queue.tenants, queue.prices)
    return queue.solutions.derived.of("problem", key, lambda: _made(queue, jobs, speeds, free, types))


def _made(
    queue: Queue, jobs: Sequence[Job], speeds: Mapping[str, Speeds], free: Mapping[str, int], types: tuple[str, ...]
) -> Problem:
    together = _rows([speeds[job.name] for job in jobs], types)
    throughputs, spread, names_of_columns = _with_placements(queue, jobs, together, types)
    tenants = _tenants(queue, jobs)
    names = [tenant.name for tenant in tenants]
    nothing = np.zeros(len(jobs))
    problem = Problem(
        types=types,
        workers=np.array([free[gpu_type] for gpu_type in types], dtype=float),
        columns=(*types, *names_of_columns),
        column_type=np.concatenate([np.arange(len(types)), spread]),
        jobs=tuple(job.name for job in jobs),
        throughputs=throughputs,
        scale=np.array([job.gpus for job in jobs], dtype=float),
        weight=np.array([job.weight for job in jobs], dtype=float),
        steps=np.full(len(jobs), np.nan),
        elapsed=nothing,
        isolated_elapsed=nothing,
        arrival=_of(jobs, lambda job: job.arrival_s),
        slo=np.full(len(jobs), np.inf),
        tenant=np.array([names.index(job.tenant) if job.tenant else -1 for job in jobs], dtype=np.int64),
        cost=np.array([queue.prices.get(gpu_type, 0.0) or np.nan for gpu_type in types]),
        pairs=np.empty((0, 2), dtype=np.int64),
        pair_throughputs=np.empty((0, len(types) + len(spread), 2)),
        tenants=tenants,
    )
    if queue.pairs is None:
        return problem
    pairs, shared = queue.pairs.rows(jobs, types, throughputs[:, : len(types)], problem.workers)
    return replace(problem, pairs=pairs, pair_throughputs=np.pad(shared, ((0, 0), (0, len(spread)), (0, 0))))


def _with_placements(
    queue: Queue, jobs: Sequence[Job], speeds: Floats, types: Sequence[str]
) -> tuple[Floats, Ints, tuple[str, ...]]:
    """Throughputs by column of jobs with these (J x W) on the fewest nodes, and the types and names of the columns
    beyond W: spread, then within domains."""
    if all(job.gpus == 1 for job in jobs):
        return speeds, np.empty(0, dtype=np.int64), ()
    near, far = speeds, np.zeros(speeds.shape)
    within: dict[tuple[int, int], Floats] = {}
    for row, job in enumerate(jobs):
        for gpu_type, (together, spread_out) in queue.speed_parts(job).items() if job.gpus > 1 else ():
            if gpu_type in types:
                column = types.index(gpu_type)
                far[row, column] = spread_out * near[row, column]
                near[row, column] *= together
        for gpu_type, tiers in queue.tiers(job).items() if job.gpus > 1 else ():
            for tier in tiers[1:-1] if gpu_type in types else ():
                column = types.index(gpu_type)
                found = within.setdefault((column, tier.depth), np.zeros(len(jobs)))
                found[row] = tier.kept * near[row, column]
    spread = np.flatnonzero(far.any(axis=0))
    between = sorted(within)
    names = [types[type_] + UNCONSOLIDATED for type_ in spread.tolist()]
    names += [f"{types[type_]}{WITHIN}{depth}" for type_, depth in between]
    columns = [near, far[:, spread], *(within[key][:, None] for key in between)]
    own = np.array([*spread.tolist(), *(type_ for type_, _ in between)], dtype=np.int64)
    return np.concatenate(columns, axis=1), own, tuple(names)


def _rows(speeds: Sequence[Speeds], types: Sequence[str]) -> Floats:
    """J x W. Jobs of one kind have one mapping, which is looked into once."""
    places: dict[int, int] = {}
    rows: list[list[float]] = []
    for each in speeds:
        if places.setdefault(id(each), len(rows)) == len(rows):
            rows.append([each.get(gpu_type, 0.0) for gpu_type in types])
    return np.array(rows)[[places[id(each)] for each in speeds]]


def check_prices(queue: Queue, policy: str) -> None:
    """Raise FieldError for a GPU type without a price."""
    for gpu_type in sorted(name for name, gpus in queue.gpus_of.items() if gpus > 0 and not queue.prices.get(name)):
        problem = f"of type {gpu_type} lack price_per_hour; {policy} needs the price of every GPU"
        raise FieldError("nodes", problem)


def _tenants(queue: Queue, jobs: Sequence[Job]) -> tuple[Tenant, ...]:
    """The tenants that have jobs, by name."""
    known = {tenant.name: tenant for tenant in queue.tenants}
    return tuple(known.get(name, Tenant(name)) for name in sorted({job.tenant for job in jobs if job.tenant}))


def _of(jobs: Sequence[Job], value: Callable[[Job], float]) -> Floats:
    return np.array([value(job) for job in jobs], dtype=float)


def _steps(queue: Queue, job: Job, speed: float) -> float:
    """Steps that are left, with those that it could do in its pauses; of a job that ends by time, what it would do at
    its fastest."""
    if job.seconds_left is not None:
        return min(_MOST_STEPS, max(1.0, job.seconds_left * speed))
    if job.steps_total is not None:
        return max(1.0, float(job.steps_total - job.steps_done) / (1.0 - job.pause_share))
    return min(_MOST_STEPS, speed * max(sum(job.received_s.values()), queue.round_s))
