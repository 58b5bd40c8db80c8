"""What options need of the inputs that they are given with."""

from collections.abc import Iterable, Sequence

import click

from synergy_cli.errors import BadInputError
from synergy_core.model.names import nearest
from synergy_core.model.snapshot import Tenant
from synergy_core.model.tenant_tree import TenantTree
from synergy_core.policies.rounds.time_shares import BY_COST
from synergy_simulator.engine.options import Options
from synergy_simulator.workloads.workload import Workload

_NEVER_PREEMPT = frozenset({"best-effort", "fifo", "yarn-cs"})

_MOST_NAMES = 10


def check_window(option: str, window: tuple[int, int], jobs: int) -> None:
    """Raise BadInputError where a window goes past the last job."""
    if window[1] > jobs:
        raise BadInputError(f"{option}: {window[0]}:{window[1]} goes past the {jobs} jobs of the trace")


def check_tenants(tenants: Sequence[Tenant], workload: Workload) -> None:
    """Raise BadInputError for a tenant without a simulated job."""
    there = {task.tenant for task in workload.tasks if task.tenant}
    for tenant in tenants:
        if tenant.name not in there:
            meant = nearest(tenant.name, there)
            suggestion = "" if meant is None else f"did you mean {meant!r}? "
            choice = f"choose one of {_some(sorted(there))}" if there else "none of the jobs names a tenant"
            raise BadInputError(f"--tenant: no job that is simulated is of {tenant.name!r}; {suggestion}{choice}")


def check_limits(workload: Workload) -> None:
    """Raise BadInputError for a job that its tenant's limits would keep waiting for ever."""
    tree, types = TenantTree(workload.cluster.tenants), workload.cluster.gpu_types
    for task in workload.tasks if tree else ():
        most = max(min(tree.cap(index, one) for index in tree.path(task.tenant)) for one in types)
        if task.gpus > most:
            problem = f"tenant {task.tenant or '(none)'} may hold {most} GPUs of a type, and job {task.name} needs"
            raise BadInputError(f"--cluster: {problem} {task.gpus}; raise its limit or borrowing, or leave the job out")


def _some(names: Sequence[str]) -> str:
    """The first of many names."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def check_costs(policies: Iterable[str], workload: Workload) -> None:
    """Raise BadInputError where a policy by cost meets a pool without a price."""
    for policy in BY_COST.intersection(policies):
        for pool in (pool for pool in workload.cluster.pools if pool.cost_per_hour <= 0):
            raise BadInputError(
                f"--cluster: pool {pool.name} lacks cost_per_hour; {policy} needs the price of every GPU"
            )


def check_bandwidths(workload: Workload, options: Options, *, profiles: str | None) -> None:
    """Raise BadInputError where a bandwidth is given and no job of the trace has anything to send."""
    if options.storage_bytes_per_s is not None and not any(task.checkpoint_bytes for task in workload.tasks):
        raise BadInputError("--storage-bandwidth: no job of the trace has checkpoint_bytes; add that column")
    if options.plan.link_bytes_per_s is None:
        return
    if not any(task.model_bytes for task in workload.tasks):
        raise BadInputError("--link-bandwidth: no job of the trace has model_bytes; add that column")
    if profiles is None:
        raise BadInputError("--link-bandwidth: needs --profiles, which tell how many steps a second send their bytes")


def warn_of_free_preemption(policies: Iterable[str], options: Options) -> None:
    """Say on stderr that the simulation assumes preemption to cost nothing, where a policy could preempt."""
    if options.preemption_overhead_s > 0 or options.storage_bytes_per_s is not None:
        return
    if not _NEVER_PREEMPT.issuperset(policies):
        click.echo(
            "warning: this simulation assumes that a preemption costs nothing; give --preemption-overhead the measured "
            "seconds of a save and a start, or --storage-bandwidth",
            err=True,
        )


def check_draws(workloads: Sequence[Workload]) -> None:
    """Raise BadInputError where the workloads of several seeds are the same, since nothing of them is drawn."""
    if len(workloads) > 1 and all(one.tasks == workloads[0].tasks for one in workloads[1:]):
        raise BadInputError(
            "--seeds: nothing of this trace is drawn, so every seed gives the same figures; leave it out, or draw a "
            "trace for each seed and write {seed} into the name of --trace"
        )


def check_placements(workload: Workload, options: Options) -> None:
    """Raise BadInputError where policies need to know what spreading costs and no input says it."""
    knows_link = options.plan.link_bytes_per_s is not None
    if options.plan.placement_sensitive and not any(
        task.spread_speed is not None or task.spread_speeds or (knows_link and task.model_bytes)
        for task in workload.tasks
    ):
        raise BadInputError(
            "--placement-sensitive: no input says what a job keeps of its speed on many nodes; add the column "
            "spread_speed to the trace, or give --unconsolidated, or --link-bandwidth with the column model_bytes"
        )


def check_sharing(modes: Iterable[str], workload: Workload, *, sharing: bool) -> None:
    """Raise BadInputError where jobs share GPUs and no input says at what speeds."""
    if not sharing and all(mode == "none" for mode in modes):
        return
    if not any(task.usage for task in workload.tasks):
        option = "--sharing" if sharing else "--colocation"
        raise BadInputError(
            f"{option}: no job of the trace has a usage of the GPU; give --usage, or --profiles with pairs"
        )
    if not any(pool.replicas > 1 and pool.gpu_memory_gib > 0 for pool in workload.cluster.pools):
        raise BadInputError("--cluster: no pool has replicas above 1 and gpu_memory_gib; --colocation needs both")
