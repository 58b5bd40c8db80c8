"""Figure 14: how long a new allocation takes, over the number of jobs; the cluster grows with them."""

import time
from dataclasses import replace

from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_simulator.engine.fluid import allocation_problem
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.gavel.common import GavelInputs, cluster

POLICIES = {"LAS": "max-min-fairness", "hierarchical": "hierarchical"}
TENANTS = tuple(Tenant(f"{index}", 1.0) for index in range(5))
PAPER = {("hierarchical", 2048): "under 10 min"}


def fig14(inputs: Inputs) -> Findings:
    """Processor seconds of one solve of each policy, without pairs."""
    gavel = GavelInputs.of(inputs)
    sizes = (32, 128) if inputs.quick else (32, 128, 512, 1024, 2048)
    found: dict[tuple[str, int], float] = {}
    for jobs in sizes:
        there = cluster(jobs // 4)
        tasks = [
            replace(task, tenant=TENANTS[index % len(TENANTS)].name)
            for index, task in enumerate(gavel.workload(gavel.drawn(jobs), there).tasks)
        ]
        for label, policy in POLICIES.items():
            problem = allocation_problem(tasks, there, tenants=TENANTS)
            solve(problem, policy)  # what is loaded once per process is not part of a solve
            started = time.process_time()
            solve(problem, policy)
            found[label, jobs] = time.process_time() - started
    rows = [
        (str(jobs), *(f"{found[label, jobs]:.3f}" for label in POLICIES), PAPER.get(("hierarchical", jobs), ""))
        for jobs in sizes
    ]
    title = "Gavel, figure 14: seconds of an allocation"
    lines = [Line(label, [(float(jobs), found[label, jobs]) for jobs in sizes]) for label in POLICIES]
    differs = [
        gavel.speeds_note,
        "Jobs of one GPU, a quarter as many GPUs of each type as jobs; five entities.",
        "With pairs, and other policies: kube-synergy bench solver.",
    ]
    chart = Chart(lines, title=title, x="jobs", y="seconds", log_x=True)
    header = ("jobs", *(f"{label}, s" for label in POLICIES), "the paper, hierarchical")
    figures = {f"{POLICIES[label]}_{jobs}_s": seconds for (label, jobs), seconds in found.items()}
    return Findings(title, header, rows, differs, [chart], figures)
