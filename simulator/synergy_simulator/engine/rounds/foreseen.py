"""Rounds whose plan is known without planning: it would be the previous plan again."""

from collections.abc import Collection, Mapping, Sequence

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job
from synergy_core.policies import POLICIES
from synergy_core.policies.classes import by_class
from synergy_core.policies.queue import Queue, Ranking
from synergy_core.policies.rounds.time_shares import NAMES

ORDER_NEVER_CHANGES = frozenset({"best-effort", "fifo", "sf", "yarn-cs"})
"""Policies for which time alone changes nothing."""

SHARES_TIME = frozenset(NAMES)
"""Policies that give each job a part of the time on each GPU type, where there are several."""

SELECTS_BY_GPUS = frozenset({"proportional", "tune", "opt"})
"""Mechanisms that select jobs by their order and GPUs alone: CPU and memory are fungible (section 4.2)."""


def ranking(config: PlanConfig, jobs: Sequence[Job], *, speeds: Mapping[str, float], gpus: int, now: float) -> Ranking:
    """The policy's order of the jobs on a cluster of `gpus`. `speeds`: steps per second at the proportional share, by
    job."""
    queue = Queue(now=now, jobs=tuple(jobs), steps_per_s=lambda job: speeds[job.name], gpus=gpus, queues=config.queues)
    return by_class(POLICIES[config.policy](queue), jobs, across=config.priorities_across)


def same_jobs_run(order: Ranking, gpus: Mapping[str, int], running: Collection[str], total_gpus: int) -> bool:
    """True if the plan would change nothing: it promotes no job, and the running jobs are those that it would choose in
    this order on a pool of `total_gpus`.

    This is the walk of `synergy_core.selection.by_share` for jobs that may use any node of a pool of one GPU type.
    """
    if order.promoted or not (order.preempts and order.passes):
        return False
    left, staying = total_gpus, len(running)
    for name in order.names:
        fits = gpus[name] <= left
        if fits != (name in running):
            return False
        if fits:
            left -= gpus[name]
            staying -= 1
        if left == 0:
            break
    return staying == 0
