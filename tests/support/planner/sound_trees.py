"""Random trees of tenants made sound: what a snapshot may have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from synergy_core.model.snapshot import Tenant


def sound(tenants: Sequence[Tenant]) -> tuple[Tenant, ...]:
    """The tree with as little changed as makes it sound.

    A tenant whose parent is missing, or below itself, has none. A guarantee is cut down to the tenant's limit, and to
    what its parent's leaves beside siblings with earlier names.
    """
    by_name = {tenant.name: tenant for tenant in tenants}
    rooted = [
        tenant
        if tenant.parent is None or (tenant.parent in by_name and not _is_below_itself(tenant, by_name))
        else replace(tenant, parent=None)
        for tenant in tenants
    ]
    given: dict[str, Mapping[str, int]] = {}
    for tenant in _from_the_roots(rooted):
        earlier = [
            given[o.name] for o in rooted if o.parent == tenant.parent and o.name < tenant.name and o.name in given
        ]
        given[tenant.name] = {
            gpu_type: min(
                guarantee,
                tenant.limit.get(gpu_type, guarantee),
                guarantee
                if tenant.parent is None
                else given[tenant.parent].get(gpu_type, 0) - sum(one.get(gpu_type, 0) for one in earlier),
            )
            for gpu_type, guarantee in tenant.guarantee.items()
        }
    return tuple(one if one.guarantee == given[one.name] else replace(one, guarantee=given[one.name]) for one in rooted)


def _from_the_roots(tenants: Sequence[Tenant]) -> Iterator[Tenant]:
    """Parents before their children, siblings by name."""
    children: dict[str | None, list[Tenant]] = {}
    for tenant in sorted(tenants, key=lambda one: one.name):
        children.setdefault(tenant.parent, []).append(tenant)
    found = children.pop(None, [])
    while found:
        yield from found
        found = [child for tenant in found for child in children.pop(tenant.name, [])]


def _is_below_itself(tenant: Tenant, by_name: Mapping[str, Tenant]) -> bool:
    seen: set[str] = set()
    above = tenant.parent
    while above is not None and above in by_name and above not in seen:
        seen.add(above)
        above = by_name[above].parent
    return tenant.name in seen
