"""Tiresias' figure 7: three jobs on two GPUs under SRSF, 2D-Gittins and 2D-LAS, round by round."""

from synergy_core.model.config import PriorityQueues
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.errors import InputLocation
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.workloads.workload import build_workload

JOBS = ((2, 2.0), (1, 8.0), (2, 6.0))
"""GPUs and duration of the jobs 1 to 3."""
PAPER = {"srsf": 28 / 3, "2d-gittins": 10.0, "2d-las": 35 / 3}
"""Average JCT; the paper rounds to 9.3, 10 and 11.7."""
_SERVICES = (4.0, 8.0, 12.0)
_QUEUES = {
    "srsf": PriorityQueues(),
    "2d-gittins": PriorityQueues(thresholds_gpu_s=(4.0,), service_gpu_s=_SERVICES),
    "2d-las": PriorityQueues(thresholds_gpu_s=()),
}


def fig7(_inputs: Inputs) -> Findings:
    """The whole time sequence: which job runs in each unit of time."""
    rows, figures = [], {}
    for policy, paper in PAPER.items():
        outcome = _run(policy)
        average = sum(run.finish_s or 0.0 for run in outcome.runs) / len(outcome.runs)
        rows.append((policy, _sequence(outcome), f"{average:.2f}", f"{paper:.2f}"))
        figures[policy] = average
    header = ("policy", "job in each unit of time", "average JCT", "the paper")
    differs = [
        (
            "The text of the paper has the averages; the sequences are in its drawing only. 2D-Gittins has a queue "
            "that ends at 4, the shortest service of its distribution (4, 8, 12); 2D-LAS is not discretised."
        )
    ]
    return Findings("Figure 7: three jobs on two GPUs", header, rows, differs, (), figures)


def _run(policy: str) -> Outcome:
    jobs = [
        TraceJob(
            name=f"job-{number}",
            arrival_s=0.0,
            gpus=gpus,
            model=None,
            duration_s=duration,
            place=InputLocation("figure 7"),
        )
        for number, (gpus, duration) in enumerate(JOBS, start=1)
    ]
    pool = SimulatedPool(
        name="n", gpu_type="P100", nodes=1, gpus_per_node=2, cpus_per_node=4.0, memory_gib_per_node=64.0
    )
    workload = build_workload(jobs, None, Cluster((pool,)))
    options = Options(policy=policy, mechanism="proportional", queues=_QUEUES[policy], round_s=1.0, record=True)
    return simulate(workload, options)


def _sequence(outcome: Outcome) -> str:
    owner = {
        unit: segment.job[-1]
        for segment in outcome.segments
        for unit in range(round(segment.start), round(segment.end))
    }
    return "".join(owner[unit] for unit in sorted(owner))
