"""Figure 12: fairness over three entities and within them, as jobs are added to 3 V100, 3 P100 and 3 K80 GPUs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.shares import equal_share_throughput
from synergy_simulator.engine.fluid import allocation_problem
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.gavel.common import GavelInputs, cluster
from synergy_simulator.workloads.workload import Task

TENANTS = tuple(Tenant(f"entity {index}", float(index + 1)) for index in range(3))
JOBS_OF_EACH = 6
EVERY = 4
"""Steps of time after which a job is added."""


def fig12(inputs: Inputs) -> Findings:
    """The allocation after each arrival; no job ends."""
    gavel = GavelInputs.of(inputs)
    there = cluster(3)
    tasks = [
        replace(task, tenant=TENANTS[index // JOBS_OF_EACH].name)
        for index, task in enumerate(gavel.workload(gavel.drawn(len(TENANTS) * JOBS_OF_EACH), there).tasks)
    ]
    counts = range(1, len(tasks) + 1)
    problems = [allocation_problem(tasks[:count], there, tenants=_present(tasks[:count])) for count in counts]
    ours = [_normalised(problem, solve(problem, "hierarchical").x) for problem in problems]
    split = [float(_normalised(problem, _partition(problem)).sum()) for problem in problems]
    parts = [[float(one[problem.tenant == index].sum() / one.sum()) for index in range(len(TENANTS))]
             for problem, one in zip(problems, ours, strict=True)]  # fmt: skip
    lower = 1.0 - split[-1] / float(ours[-1].sum())
    totals = [float(one.sum()) for one in ours]
    rows = [
        (str(count), *(f"{part:.3f}" for part in parts[count - 1]), f"{total:.2f}", f"{alone:.2f}")
        for count, total, alone in zip(counts, totals, split, strict=True)
    ]
    differs = [
        gavel.speeds_note,
        "Throughputs are relative to an equal share of all GPUs. Which jobs the paper added it does not tell: drawn.",
        f"With all jobs there a static partition has a total that is {lower:.0%} lower; the paper: about 17 %.",
        "The weights ask for 0.167, 0.333 and 0.5 of the whole with all jobs there.",
    ]
    figures = {"static_partition_lower": lower, **{f"part_of_entity_{i}": part for i, part in enumerate(parts[-1])}}
    header = ("jobs", *(f"{tenant.name} (weight {tenant.weight:g})" for tenant in TENANTS), "total", "static partition")
    title = "Gavel, figure 12: fairness over entities and within them"
    return Findings(title, header, rows, differs, _charts(ours, split), figures)


def _present(tasks: Sequence[Task]) -> list[Tenant]:
    return [tenant for tenant in TENANTS if any(task.tenant == tenant.name for task in tasks)]


def _normalised(problem: Problem, x: Floats) -> Floats:
    return effective_throughput(problem, x) / equal_share_throughput(problem)


def _partition(problem: Problem) -> Floats:
    """Each entity its part of every GPU type by weight, each job an equal part of that, at most all its time."""
    weights = np.array([tenant.weight for tenant in problem.tenants])
    jobs = np.bincount(problem.tenant, minlength=len(weights))
    part = (weights / weights.sum() / jobs)[problem.tenant]
    shares = part[:, None] * problem.workers[None, :]
    return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0))


def _charts(ours: Sequence[Floats], split: Sequence[float]) -> list[Chart]:
    """Each job's part of all throughput over time, and the total."""
    jobs = len(ours[-1])
    lines = [
        Line(
            f"job {job} of {TENANTS[job // JOBS_OF_EACH].name}",
            [(float(EVERY * step), float(one[job] / one.sum())) for step, one in enumerate(ours) if job < len(one)],
        )
        for job in range(jobs)
    ]
    totals = [
        Line("Gavel", [(float(EVERY * step), float(one.sum())) for step, one in enumerate(ours)]),
        Line("static partition", [(float(EVERY * step), total) for step, total in enumerate(split)]),
    ]
    return [
        Chart(lines, title="Part of all throughput", x="time", y="part"),
        Chart(totals, title="Total throughput", x="time", y="relative to an equal share"),
    ]
