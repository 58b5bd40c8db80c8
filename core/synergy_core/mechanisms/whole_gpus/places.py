"""Nodes for newcomers where only numbers of GPUs matter: `mechanisms.packing.packer` on nodes that are alike."""

from collections.abc import Sequence

import numpy as np

from synergy_core.mechanisms.whole_gpus.walk import Chosen
from synergy_core.model.placement import NodeAssignments, choose
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation
from synergy_core.selection.job_info import JobInfo


def allocations(chosen: Chosen, pools: Sequence[Pool]) -> dict[str, Allocation]:
    """What each job that runs has, by name."""
    free = {pool.gpu_type: list(pool.gpus) for pool in pools}
    found: dict[str, Allocation] = {}
    for info in chosen.staying:
        held, running = info.held, info.running
        assert held is not None, "a job that stays is somewhere"
        assert running is not None, "a job that stays holds something"
        found[info.name] = running
        own = free[held.pool.gpu_type]
        for node, gpus in held.assignments:
            own[node] -= gpus
    for pool in pools:
        newcomers = chosen.newcomers[pool.gpu_type]
        if len(newcomers) > 1:
            newcomers = sorted(newcomers, key=lambda info: (-info.gpus, info.name))
        for info in newcomers:
            found[info.name] = _placed(info, pool, free[pool.gpu_type])
    return found


def _placed(info: JobInfo, pool: Pool, free: list[int]) -> Allocation:
    """Take GPUs of the pool for a job."""
    assignments = _nodes_for(info, free)
    for node, gpus in assignments:
        free[node] -= gpus
    held, running = info.held, info.running
    if running is not None and held is not None and (held.pool, held.assignments) == (pool, assignments):
        return running  # another job took its place, and it got the same again
    terms = info.on(pool)
    speed = terms.proportional_steps_per_s()
    return Allocation(
        job=info.name,
        gpu_type=pool.gpu_type,
        workers=terms.workers(assignments),
        steps_per_s=speed,
        proportional_steps_per_s=speed,
    )


def _nodes_for(info: JobInfo, free: list[int]) -> NodeAssignments:
    need = info.gpus
    if need == 1 or info.placement != "spread":
        _, node = min([(gpus, node) for node, gpus in enumerate(free) if gpus >= need], default=(0, -1))
        if node >= 0:
            return ((node, need),)
    room = np.array(free, dtype=np.int64)
    found = choose(info.placement, need, room, room.astype(np.float64))
    if found is None:
        raise RuntimeError(f"a job with counted GPUs, {info.name}, cannot be placed")
    return found
