"""Policies that know no durations, and some that do, with and without tuning, on one GPU type and on three.

Not in the papers: each has a part of it. Tiresias' queues say who is ahead, Synergy's tuning what each gets, and the
jobs' speeds on the types where.
"""

from typing import Any, Final

from synergy_core.model.config import PriorityQueues
from synergy_simulator.engine.options import Options
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.profiles import ProfileTable
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs, avg_h
from synergy_simulator.workloads.generator import PHILLY, Split
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload

POLICIES: Final = ("2d-las", "2d-gittins", "las", "srtf", "ftf")
MECHANISMS: Final = ("proportional", "tune")
SLOWER: Final = {"V100": 1.0, "P100": 1.7, "K80": 4.0}
"""How many times as long a GPU takes for a step."""
THRESHOLDS: Final = (HOUR, 10 * HOUR)
SPLIT: Final = Split(20, 70, 10)
LOAD: Final = 0.5
"""Jobs per hour for each node of V100s: a third more than 8 GPUs can bear with proportional shares."""


def composition(inputs: Inputs) -> Findings:
    """Average JCT of each policy with each mechanism on both clusters."""
    workloads = {"one type": _workload(inputs, _one_type(inputs)), "three types": _workload(inputs, _three(inputs))}
    grid = [(kind, policy, mechanism) for kind in workloads for policy in POLICIES for mechanism in MECHANISMS]
    cases = [_case(workloads[kind], policy, mechanism) for kind, policy, mechanism in grid]
    found = {key: avg_h(summary) for key, summary in zip(grid, inputs.run(cases), strict=True)}
    rows = []
    for policy in POLICIES:
        row = [policy]
        for kind in workloads:
            plain, tuned = (found[kind, policy, mechanism] for mechanism in MECHANISMS)
            row += [f"{plain:.2f} h", f"{tuned:.2f} h", f"{plain / tuned:.2f}x"]
        rows.append(row)
    header = ["policy", *(f"{kind}, {what}" for kind in workloads for what in (*MECHANISMS, "gain"))]
    jobs = (
        "Not in the papers. Jobs: 10^x minutes, Poisson arrivals, the Philly GPU counts; models and matrices are the "
        "built-in ones, on a P100 with steps 1.7 times, on a K80 4 times as long as on a V100."
    )
    clusters = (
        f"Both clusters have {_nodes(inputs)} nodes of 8 GPUs and 24 CPUs; queues end at 1 and 10 GPU-hours, "
        "2d-gittins knows the distribution of the trace."
    )
    figures = {f"{kind}_{policy}_{mechanism}_h": hours for (kind, policy, mechanism), hours in found.items()}
    return Findings("Policies with mechanisms on GPU types: average JCT", header, rows, (jobs, clusters), (), figures)


def _nodes(inputs: Inputs) -> int:
    return 4 if inputs.quick else 16


def _one_type(inputs: Inputs) -> dict[str, int]:
    return {"V100": _nodes(inputs)}


def _three(inputs: Inputs) -> dict[str, int]:
    nodes = _nodes(inputs)
    return {"V100": nodes // 2, "P100": nodes // 4, "K80": nodes - nodes // 2 - nodes // 4}


def _workload(inputs: Inputs, nodes: dict[str, int]) -> Workload:
    """The same kind of jobs; as many per hour as both clusters can bear: three types do less in an hour than one."""
    power = sum(count / SLOWER[gpu_type] for gpu_type, count in nodes.items())
    profiles: ProfileTable = built_in_profiles(SLOWER)
    count = 50 if inputs.quick else 1500
    trace = inputs.derived(count, SPLIT, load=LOAD * power, gpu_mix=PHILLY, models=profiles.models)
    pools = tuple(_pool(gpu_type, count) for gpu_type, count in nodes.items())
    return build_workload(trace, profiles, Cluster(pools))


def _pool(gpu_type: str, nodes: int) -> SimulatedPool:
    amounts: dict[str, Any] = {"gpus_per_node": 8, "cpus_per_node": 24.0, "memory_gib_per_node": 500.0}
    return SimulatedPool(name=gpu_type.lower(), gpu_type=gpu_type, nodes=nodes, **amounts)


def _case(workload: Workload, policy: str, mechanism: str) -> Case:
    services = tuple(task.gpus * task.alone_s for task in workload.tasks) if policy == "2d-gittins" else ()
    queues = PriorityQueues(thresholds_gpu_s=THRESHOLDS, service_gpu_s=services)
    label = f"{policy} on {mechanism}, {len(workload.cluster.pools)} types"
    return Case(label, workload, Options(policy=policy, mechanism=mechanism, queues=queues))
