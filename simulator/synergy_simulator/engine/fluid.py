"""The ideal that rounds are measured against: each job has, at every moment, exactly what its allocation says.

The baseline of Gavel's figure 15b. X is found anew whenever a job arrives or ends, and until then each job makes its
effective throughput; no job waits for a round, is rounded to whole GPUs or moved.
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_simulator.inputs.clusters import Cluster
from synergy_simulator.workloads.workload import Task, Workload

_DONE = 1e-6
"""Steps; less is a rounding error."""


def allocation_problem(
    tasks: Sequence[Task], cluster: Cluster, *, tenants: Sequence[Tenant] = (), left: Sequence[float] = ()
) -> Problem:
    """Tasks at their GPU-proportional speeds on a cluster, as the allocation policies read them; they have just begun.

    `left` are their steps, where these are not all of them.
    """
    types = tuple(sorted(cluster.gpu_types))
    names = [tenant.name for tenant in tenants]
    speeds = [[_speed(task, gpu_type) for gpu_type in types] for task in tasks]
    nothing = np.zeros(len(tasks))
    return Problem(
        types=types,
        workers=np.array([cluster.gpus_of(gpu_type) for gpu_type in types], dtype=float),
        columns=types,
        column_type=np.arange(len(types)),
        jobs=tuple(task.name for task in tasks),
        throughputs=np.array(speeds),
        scale=np.array([task.gpus for task in tasks], dtype=float),
        weight=np.array([task.weight for task in tasks], dtype=float),
        steps=np.array(left or [task.steps for task in tasks], dtype=float),
        elapsed=nothing,
        isolated_elapsed=nothing,
        arrival=np.array([task.arrival_s for task in tasks], dtype=float),
        slo=np.full(len(tasks), np.inf),
        tenant=np.array([names.index(task.tenant) if task.tenant in names else -1 for task in tasks], dtype=np.int64),
        cost=np.full(len(types), np.nan),
        pairs=np.empty((0, 2), dtype=np.int64),
        pair_throughputs=np.empty((0, len(types), 2)),
        tenants=tuple(tenants),
    )


def _speed(task: Task, gpu_type: str) -> float:
    profile = task.profiles.get(gpu_type)
    return 0.0 if profile is None else profile.steps_per_s[-1][-1]


def fluid_jcts(workload: Workload, policy: str, *, aware: bool = True, measure: tuple[int, int]) -> list[float]:
    """JCTs in seconds of the tasks from `measure[0]` up to `measure[1]` in the order of arrival.

    Others keep coming until these are done. X of the policy must depend on the present jobs alone (`max-min-fairness`
    and the like).
    """
    tasks, now, coming = workload.tasks, 0.0, 0
    active: dict[int, float] = {}
    ends: dict[int, float] = {}
    wanted = set(range(*measure))
    while wanted - ends.keys():
        rates = _rates(workload, active, policy, aware=aware)
        first = min((now + active[index] / rate for index, rate in rates.items() if rate > 0), default=inf)
        arrival = tasks[coming].arrival_s if coming < len(tasks) else inf
        then = min(first, arrival)
        for index, rate in rates.items():
            active[index] -= rate * (then - now)
        now = then
        for index in [index for index, left in active.items() if left <= _DONE * tasks[index].steps]:
            ends[index] = now
            del active[index]
        while coming < len(tasks) and tasks[coming].arrival_s <= now:
            active[coming] = tasks[coming].steps
            coming += 1
    return [ends[index] - tasks[index].arrival_s for index in sorted(wanted)]


def _rates(workload: Workload, active: dict[int, float], policy: str, *, aware: bool) -> dict[int, float]:
    if not active:
        return {}
    tasks = [workload.tasks[index] for index in active]
    problem = allocation_problem(tasks, workload.cluster, left=list(active.values()))
    found = solve(problem, policy, aware=aware, efficient=True)
    return dict(zip(active, effective_throughput(problem, found.x).tolist(), strict=True))
