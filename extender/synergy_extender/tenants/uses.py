"""What each tenant uses, borrows, lends and waits for now, in whole GPUs by type. Pure.

What a tenant's children use counts for it too.
"""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from synergy_api.cluster.tenant_tree import TenantTree, lowered, tenant_tree
from synergy_api.resources.tenant_status import ANY_TYPE
from synergy_extender.cluster.run_state import RunState, open_run, run_state
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key

_WAITS = (RunState.WAITING, RunState.BACKING_OFF)
Gpus = Mapping[str, int]


@dataclass(frozen=True)
class TenantUse:
    """One tenant's GPUs by type. Types of which it has none are absent."""

    guaranteed: Gpus = field(default_factory=dict)
    used: Gpus = field(default_factory=dict)
    borrowed: Gpus = field(default_factory=dict)
    lent: Gpus = field(default_factory=dict)
    waiting: Gpus = field(default_factory=dict)


def tree_of(state: ClusterState) -> TenantTree:
    """The tree of the cluster's Tenants, with guarantees that its GPUs can keep."""
    return tenant_tree(state.tenancy.tenants, cluster_gpus(state))


def cluster_gpus(state: ClusterState) -> Gpus:
    """GPUs by type, of nodes that take jobs and of those that still hold some: a node that is only cordoned must not
    lower the guarantee by which its jobs run."""
    found = Counter[str]()
    for node in state.capacities:
        if node.gpu_type and (node.schedulable or state.pods.held(node.name).gpus > 0):
            found[node.gpu_type] += node.gpus
    return found


def tenant_uses(state: ClusterState, tree: TenantTree, tenants: Mapping[Key, str], now: float) -> dict[str, TenantUse]:
    """The use of each tenant of the tree. `tenants` has the tenant that each job counts for."""
    types = {node.gpu_type for node in state.capacities if node.gpu_type}
    used = {name: Counter[str]() for name in tree.tenants}
    waiting = {name: Counter[str]() for name in tree.tenants}
    shared: set[tuple[str, frozenset[str]]] = set()
    for key, job in state.jobs.items():
        held, wanted, group = gpus_held(job), _wanted_type(job, types, now), _group(job)
        for name in tree.upwards(tenants.get(key, "")) if held or wanted else ():
            if name in used:
                used[name].update(held if not group or (name, group) not in shared else {})
                waiting[name].update({wanted: job.spec.gpus} if wanted else {})
                shared.add((name, group))
    guaranteed = {name: one.guarantee for name, one in tree.tenants.items()}
    lent = _lent(tree, guaranteed, used, _free(state))
    return {
        name: TenantUse(
            guaranteed=dict(guaranteed[name]),
            used=dict(used[name]),
            borrowed=_positive({kind: gpus - guaranteed[name].get(kind, 0) for kind, gpus in used[name].items()}),
            lent=lent[name],
            waiting=dict(waiting[name]),
        )
        for name in tree.tenants
    }


def gpus_held(job: JobView) -> Gpus:
    """GPUs of the job's open run, by type."""
    allocation = open_run(job)
    if allocation is None:
        return {}
    return _positive({allocation.gpu_type: sum(share.gpus for share in allocation.workers)})


def _group(job: JobView) -> frozenset[str]:
    """The jobs that share its GPUs as planned, itself among them; empty if it has its GPUs alone. A tenant holds a GPU
    once, however many of its jobs share it."""
    allocation = open_run(job)
    partners = allocation.shared_gpu.asked if allocation is not None and allocation.shared_gpu is not None else []
    return frozenset((str(job.key), *partners)) if partners else frozenset()


def _wanted_type(job: JobView, types: Set[str], now: float) -> str:
    """The GPU type that the job waits for, `ANY_TYPE` if it may be one of several; empty if it waits for none.

    A type that no node has counts as `ANY_TYPE`: jobs can name any, and each would be an entry of its own.
    """
    if run_state(job, now) not in _WAITS:
        return ""
    allowed = job.spec.gpu_types or sorted(types)
    return allowed[0] if len(allowed) == 1 and allowed[0] in types else ANY_TYPE


def _free(state: ClusterState) -> Gpus:
    found = Counter[str]()
    for node in state.capacities:
        if node.gpu_type and node.schedulable:
            held = -(-state.pods.held(node.name).gpus // node.devices_per_gpu)
            found[node.gpu_type] += max(0, node.gpus - held)
    return found


def _lent(
    tree: TenantTree, guaranteed: Mapping[str, Gpus], used: Mapping[str, Gpus], free: Gpus
) -> dict[str, dict[str, int]]:
    """Unused guaranteed GPUs that are not free either, so others have them. Among siblings each has lent in proportion
    to what it does not use."""
    lent: dict[str, dict[str, int]] = {name: {} for name in tree.tenants}
    for siblings in tree.children.values():
        for kind in sorted({kind for name in siblings for kind in guaranteed[name]}):
            unused = [max(0, guaranteed[name].get(kind, 0) - used[name].get(kind, 0)) for name in siblings]
            for name, gpus in zip(siblings, lowered(unused, max(0, sum(unused) - free.get(kind, 0))), strict=True):
                lent[name] |= {kind: gpus} if gpus else {}
    return lent


def _positive(gpus: Gpus) -> dict[str, int]:
    return {kind: count for kind, count in gpus.items() if count > 0}
