"""Every mechanism beside brute force: all packings of 6 jobs on 3 nodes, and all choices on one super-machine."""

import random
from functools import cache
from itertools import product
from statistics import mean

import pytest

from support.planner import promises
from support.planner.planning import GIB, job, node
from synergy_core.mechanisms.optimum.ideal import ideal
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool, Reservations
from synergy_core.model.snapshot import Job, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry

NODES, GPUS, CPU, MEMORY = 3, 8, 24000, 500 * GIB
_SPLITS = ((4, 4), (2, 6), (3, 5), (1, 7), (6, 2))

Point = tuple[int, int, float]
"""CPU, memory, speed relative to the proportional share."""


def _instance(seed: int) -> Snapshot:
    """Two jobs for each node, which fill it; their demands are from far below to far above their share."""
    rng = random.Random(seed)
    sizes = [gpus for _ in range(NODES) for gpus in rng.choice(_SPLITS)]
    jobs = tuple(_job(rng, f"j{index}", gpus) for index, gpus in enumerate(sizes))
    return Snapshot(nodes=tuple(node(f"n{index}") for index in range(NODES)), jobs=jobs)


def _job(rng: random.Random, name: str, gpus: int) -> Job:
    share_cpu, share_memory = gpus * CPU // GPUS, gpus * MEMORY // GPUS
    knee, saturated = share_cpu * rng.choice((0.3, 0.6, 1, 1.5, 2, 3)), share_memory * rng.choice((0.3, 0.6, 1, 2, 3))
    alone = rng.uniform(0.2, 0.9)
    cpu = tuple(share_cpu * sixths // 6 for sixths in (2, 4, 6, 8, 10, 12, 18))
    memory = tuple(share_memory * sixths // 6 for sixths in (2, 4, 6, 9, 12, 18))
    rows = (tuple(min(1.0, c / knee, alone + (1 - alone) * m / saturated) for m in memory) for c in cpu)
    return job(name, gpus, profiles={"V100": Profile(cpu_millis=cpu, memory_bytes=memory, steps_per_s=tuple(rows))})


def _points(one: Job) -> list[Point]:
    """Points of the job's grid, and its share, that one node can give and that are not slower than the share."""
    profile = one.profiles["V100"]
    share = (one.gpus * CPU // GPUS, one.gpus * MEMORY // GPUS)
    usual = promises.speed(profile, *share)
    grid = {(min(c, CPU), min(m, MEMORY)) for c, m in product(profile.cpu_millis, profile.memory_bytes)}
    relative = [(c, m, promises.speed(profile, c, m) / usual) for c, m in grid | {share}]
    points = [point for point in relative if point[2] >= 1 - 1e-12]
    return [p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] and q[2] >= p[2] for q in points)]


def _best_on_one(jobs: list[Job], cpu: int, memory: int) -> float:
    """The largest sum of speeds of all these jobs with so much CPU and memory; -inf where they do not fit."""
    reached: list[Point] = [(0, 0, 0.0)]
    for one in jobs:
        sums = [(a + c, b + m, v + w) for a, b, v in reached for c, m, w in _points(one) if a + c <= cpu]
        sums = sorted((s for s in sums if s[1] <= memory), key=lambda s: (s[0], s[1], -s[2]))
        reached = []
        for a, b, v in sums:
            if not any(b >= other_b and v <= other_v + 1e-12 for _, other_b, other_v in reached):
                reached.append((a, b, v))
    return max((value for _, _, value in reached), default=float("-inf"))


def _best_packing(snapshot: Snapshot) -> float:
    """Brute force over all ways to put whole jobs on nodes."""
    jobs = snapshot.jobs

    @cache
    def on_node(members: tuple[int, ...]) -> float:
        if sum(jobs[index].gpus for index in members) > GPUS:
            return float("-inf")
        return _best_on_one([jobs[index] for index in members], CPU, MEMORY)

    return max(
        sum(on_node(tuple(j for j, at in enumerate(nodes) if at == one)) for one in range(NODES))
        for nodes in product(range(NODES), repeat=len(jobs))
    )


def _throughput(snapshot: Snapshot, mechanism: str) -> float:
    result = plan(snapshot, PlanConfig(policy="fifo", mechanism=mechanism))
    promises.all_promises(snapshot, result, fill=False)
    assert not result.waiting
    return sum(a.steps_per_s / a.proportional_steps_per_s for a in result.allocations)


def test_tune_is_within_a_tenth_of_the_best_of_all_packings_and_opt_is_nearer() -> None:
    best = {seed: _best_packing(_instance(seed)) for seed in range(16)}
    tune = [_throughput(_instance(seed), "tune") / best[seed] for seed in best]
    opt = [_throughput(_instance(seed), "opt") / best[seed] for seed in best]
    assert mean(tune) >= 0.90, tune
    assert mean(opt) >= 0.95, opt
    assert all(b >= a - 1e-9 for a, b in zip(tune, opt, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_the_ideal_of_opt_is_the_best_of_all_choices_on_the_super_machine(seed: int) -> None:
    snapshot = _instance(seed)
    pool = Pool("V100", list(snapshot.nodes))
    selection = PoolSelection(
        Reservations(pool), floating=[QueueEntry(JobInfo(one, [pool], 0.05)) for one in snapshot.jobs]
    )
    best = _best_on_one(list(snapshot.jobs), NODES * CPU, NODES * MEMORY)
    assert ideal(selection).throughput == pytest.approx(best, rel=1e-3)
