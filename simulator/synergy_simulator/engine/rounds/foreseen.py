"""Whether a round can be passed over: the plan would be the last one again."""

from collections.abc import Collection, Mapping, Sequence

from synergy_core.model.config import PriorityQueues
from synergy_core.model.snapshot import Job
from synergy_core.policies import POLICIES
from synergy_core.policies.queue import Queue, Ranking
from synergy_core.policies.rounds.time_shares import NAMES

ORDER_NEVER_CHANGES = frozenset({"best-effort", "fifo", "sf", "yarn-cs"})
"""Policies for which time alone changes nothing."""

SHARES_TIME = frozenset(NAMES)
"""Policies that give each job a part of the time on each GPU type, where there are several."""

SELECTS_BY_GPUS = frozenset({"proportional", "tune", "opt"})
"""Mechanisms that select jobs by their order and GPUs alone: CPU and memory are fungible (section 4.2)."""


def ranking(
    policy: str, jobs: Sequence[Job], *, speeds: Mapping[str, float], gpus: int, now: float, queues: PriorityQueues
) -> Ranking:
    """The policy's line on a cluster of `gpus`. `speeds`: steps per second at the proportional share, by job."""
    queue = Queue(now=now, jobs=tuple(jobs), steps_per_s=lambda job: speeds[job.name], gpus=gpus, queues=queues)
    return POLICIES[policy](queue)


def same_ones_run(line: Ranking, gpus: Mapping[str, int], running: Collection[str], total_gpus: int) -> bool:
    """Whether the plan would change nothing: nobody is promoted, and the jobs that run are those who would be chosen
    from the line on a pool of `total_gpus`.

    This is the walk of `synergy_core.selection.by_share` for jobs that may use any node of a pool of one GPU type.
    """
    if line.promoted or not (line.preempts and line.passes):
        return False
    left, staying = total_gpus, len(running)
    for name in line.names:
        fits = gpus[name] <= left
        if fits != (name in running):
            return False
        if fits:
            left -= gpus[name]
            staying -= 1
        if left == 0:
            break
    return staying == 0
