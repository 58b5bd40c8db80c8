"""Synergy-Tune beside the best packing there is, found by an integer programme over small clusters (section 4.1)."""

import random
from statistics import mean

import cvxpy as cp
import numpy as np
import pytest

from support.planner.promises import speed
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Node, Profile, Snapshot
from synergy_core.plan import plan

GIB = 2**30
CPU, MEMORY, GPUS = 24000, 500 * GIB, 8


def _job(rng: random.Random, name: str, gpus: int) -> Job:
    """A job as the memory model describes it: the slower of its CPUs and its storage sets the pace."""
    share_cpu, share_memory = gpus * CPU // GPUS, gpus * MEMORY // GPUS
    knee = share_cpu * rng.choice((0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0))
    saturated = share_memory * rng.choice((0.2, 0.5, 1.0, 1.5, 2.0, 4.0))
    alone = rng.uniform(0.2, 0.9)
    cpu = tuple(int(share_cpu * factor) for factor in (1 / 3, 2 / 3, 1, 4 / 3, 5 / 3, 2, 3, 4))
    memory = tuple(int(share_memory * factor) for factor in (1 / 3, 1, 2, 3, 4))
    matrix = [[min(1.0, c / knee, alone + (1 - alone) * m / saturated) for m in memory] for c in cpu]
    return Job(
        name=name,
        gpus=gpus,
        profiles={"V100": Profile(cpu_millis=cpu, memory_bytes=memory, steps_per_s=tuple(map(tuple, matrix)))},
    )


def _instance(seed: int) -> Snapshot:
    """Two or three full nodes: as many jobs as there are GPUs, none of which needs to be split."""
    rng = random.Random(seed)
    nodes = tuple(
        Node(name=f"n{index}", gpu_type="V100", gpus=GPUS, cpu_millis=CPU, memory_bytes=MEMORY)
        for index in range(rng.choice((2, 3)))
    )
    jobs: list[Job] = []
    for _ in nodes:
        free = GPUS
        while free:
            gpus = rng.choice([g for g in (1, 2, 4) if g <= free])
            jobs.append(_job(rng, f"j{len(jobs):02}", gpus))
            free -= gpus
    return Snapshot(nodes=nodes, jobs=tuple(jobs))


def _choices(job: Job) -> list[tuple[int, int, float]]:
    """CPU, memory, speed relative to the proportional share: points of the matrix that are not slower than that."""
    profile = job.profiles["V100"]
    share = (job.gpus * CPU // GPUS, job.gpus * MEMORY // GPUS)
    usual = speed(profile, *share)
    points = [(c, m) for c in profile.cpu_millis if c <= CPU for m in profile.memory_bytes if m <= MEMORY]
    relative = [(c, m, speed(profile, c, m) / usual) for c, m in [*points, share]]
    return [point for point in relative if point[2] >= 1 - 1e-9]


def _best_total_speed(snapshot: Snapshot) -> float:
    """Sum of relative speeds of the best assignment of matrix points and nodes to jobs."""
    rows = [
        (index, node, c / CPU, m / MEMORY, job.gpus / GPUS, relative)
        for index, job in enumerate(snapshot.jobs)
        for node in range(len(snapshot.nodes))
        for c, m, relative in _choices(job)
    ]
    job_of, node_of = (np.array([row[column] for row in rows]) for column in (0, 1))
    x = cp.Variable(len(rows), boolean=True)
    limits = [cp.sum(x[job_of == index]) == 1 for index in range(len(snapshot.jobs))]
    for node in range(len(snapshot.nodes)):
        on_node = node_of == node
        for column in (2, 3, 4):
            amounts = np.array([row[column] for row in rows])
            limits.append(amounts[on_node] @ x[on_node] <= 1 + 1e-9)
    problem = cp.Problem(cp.Maximize(np.array([row[5] for row in rows]) @ x), limits)
    problem.solve(solver=cp.HIGHS, time_limit=20.0, mip_rel_gap=0.01)
    assert problem.status in {"optimal", "user_limit"}
    dual = problem.solver_stats.extra_stats.mip_dual_bound
    return float(abs(dual))


def _total_speed(snapshot: Snapshot, mechanism: str) -> float:
    result = plan(snapshot, PlanConfig(policy="fifo", mechanism=mechanism))
    assert not result.waiting
    return sum(a.steps_per_s / a.proportional_steps_per_s for a in result.allocations)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tune_is_within_a_tenth_of_the_optimum_on_average() -> None:
    kept = []
    for seed in range(12):
        snapshot = _instance(seed)
        best, tuned = _best_total_speed(snapshot), _total_speed(snapshot, "tune")
        assert len(snapshot.jobs) - 1e-6 <= tuned
        kept.append(tuned / best)
    assert mean(kept) >= 0.90, kept
    assert min(kept) >= 0.75, kept


def test_the_proportional_mechanism_gives_each_job_exactly_its_share() -> None:
    snapshot = _instance(0)
    assert _total_speed(snapshot, "proportional") == pytest.approx(len(snapshot.jobs))
