"""What tenants' limits and guarantees leave an allocation: rows of its programme.

A tenant's jobs together have no more of a GPU type than its cap, and at least what they claim of its guarantee. The
claims are whole GPUs that the jobs could really have at once: each job claims, in the order of arrival and on its
fastest types first, what is left of a guarantee above it. So there is an allocation that meets all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from synergy_core.model.snapshot import Job
from synergy_core.model.tenant_tree import NO_CAP, TenantTree
from synergy_core.policies.allocation.problem import Bound

Held = dict[tuple[int, str], int]
"""GPUs by tenant and GPU type."""


def bounds_of(
    tree: TenantTree,
    jobs: Sequence[Job],
    speeds: Mapping[str, Mapping[str, float]],
    free: Mapping[str, int],
    keeping: Iterable[Job],
) -> tuple[Bound, ...]:
    """The bounds on `jobs`, by index. `free` are the GPUs of each type, in the order of the problem's types; `keeping`
    are jobs that keep what they hold."""
    if not tree:
        return ()
    kept: Held = defaultdict(int)
    for job in keeping:
        if job.running is not None:
            _count(tree, job, job.running.gpu_type, kept)
    claimed = _claims(tree, jobs, speeds, dict(free), kept)
    members: dict[int, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        for tenant in sorted(tree.nodes(job)):
            members[tenant].append(index)
    bounds = []
    for tenant, indices in sorted(members.items()):
        for type_, gpu_type in enumerate(sorted(free)):
            cap, least = tree.cap(tenant, gpu_type), claimed[tenant, gpu_type]
            most = inf if cap == NO_CAP else float(max(cap - kept[tenant, gpu_type], least))
            if most < inf or least:
                bounds.append(Bound(type_, tuple(indices), float(least), most))
    return tuple(bounds)


def _claims(
    tree: TenantTree,
    jobs: Sequence[Job],
    speeds: Mapping[str, Mapping[str, float]],
    left: dict[str, int],
    kept: Held,
) -> Held:
    """What of each guarantee is claimed, by the jobs of all tenants below it."""
    held: Held = defaultdict(int, kept)
    claimed: Held = defaultdict(int)
    done: set[str] = set()
    for depth in reversed(range(tree.height)):
        for job in jobs:
            path = tree.paths(job)[0]
            if job.name in done or depth >= len(path):
                continue
            of_job = speeds[job.name]
            for gpu_type in sorted(of_job, key=lambda one: (-of_job[one], one)):
                within = held[path[depth], gpu_type] + job.gpus <= tree.guarantee(path[depth], gpu_type)
                below = all(held[index, gpu_type] + job.gpus <= tree.cap(index, gpu_type) for index in path)
                if within and below and job.gpus <= left[gpu_type]:
                    left[gpu_type] -= job.gpus
                    _count(tree, job, gpu_type, held)
                    _count(tree, job, gpu_type, claimed)
                    done.add(job.name)
                    break
    return claimed


def _count(tree: TenantTree, job: Job, gpu_type: str, held: Held) -> None:
    for index in tree.nodes(job):
        held[index, gpu_type] += job.gpus
