"""The tenants of a plan: those that the policy names, the tree of Tenants, and those that jobs are of. Pure."""

from collections.abc import Iterable, Set
from dataclasses import replace

from synergy_api.cluster.tenant_tree import TenantTree, TreeTenant
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_core.model import snapshot as core


def tenants_of(spec: SchedulingPolicySpec) -> tuple[core.Tenant, ...]:
    """The tenants of a policy in the planner's words."""
    return tuple(core.Tenant(tenant.name, tenant.weight, tenant.policy) for tenant in spec.tenants)


def planned_tenants(named: Iterable[core.Tenant], of_jobs: Set[str], tree: TenantTree) -> tuple[core.Tenant, ...]:
    """All tenants that a plan has to know.

    A policy's weight is stronger than a Tenant's. Where no Tenant says anything of GPUs or parents, those without jobs
    are left out; without a named tenant and without any Tenant, all are: namespaces share alike then.
    """
    by_name = {tenant.name: _with_gpus(tenant, tree.tenants.get(tenant.name)) for tenant in named}
    if not by_name and not tree.tenants:
        return ()
    further = of_jobs | (tree.tenants.keys() if tree.shares_gpus else set())
    for name in sorted(further - by_name.keys()):
        placed = tree.tenants.get(name)
        weight = placed.tenant.spec.weight if placed is not None else 1.0
        by_name[name] = _with_gpus(core.Tenant(name, weight), placed)
    return tuple(by_name.values())


def _with_gpus(tenant: core.Tenant, placed: TreeTenant | None) -> core.Tenant:
    if placed is None:
        return tenant
    spec = placed.tenant.spec
    return replace(
        tenant,
        parent=placed.parent or None,
        guarantee=dict(placed.guarantee),
        limit=dict(spec.limit),
        borrowing=dict(spec.borrowing),
        lending=dict(spec.lending),
    )
