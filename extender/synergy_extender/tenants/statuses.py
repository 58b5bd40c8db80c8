"""What a Tenant's status says. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from synergy_api.base import Condition
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.tenancy import Tenancy
from synergy_api.cluster.tenant_tree import TenantTree
from synergy_api.reasons import Reason, say
from synergy_api.resources.tenant_status import ANY_TYPE, MOST_TYPES, GpuHours, TenantStatus, TenantSummary
from synergy_extender.condition import VALID, condition
from synergy_extender.tenants.uses import TenantUse

IN_TREE: Final = "InTree"
GUARANTEE_KEPT: Final = "GuaranteeKept"
_SHOWN_TYPES: Final = 4
_WELL: Final = (Reason.TENANT_ESTABLISHED, Reason.PARENT_FOUND, Reason.GUARANTEE_COVERED)


@dataclass(frozen=True)
class TenantCounts:
    """What a tenant has on the cluster: unfinished jobs, and GPUs of jobs that are never preempted."""

    jobs: int = 0
    never_preempted_gpus: int = 0


@dataclass(frozen=True)
class TenantFacts:
    """What is known of all Tenants: by name, but for `tenancy` and `tree`."""

    tenancy: Tenancy
    tree: TenantTree = field(default_factory=TenantTree)
    counts: Mapping[str, TenantCounts] = field(default_factory=dict)
    uses: Mapping[str, TenantUse] = field(default_factory=dict)
    hours: Mapping[str, GpuHours | None] = field(default_factory=dict)


def tenant_statuses(objects: Iterable[Object], facts: TenantFacts, now: float) -> dict[str, TenantStatus]:
    """The status of each Tenant whose written one is not so already."""
    changed: dict[str, TenantStatus] = {}
    for item in objects:
        status = _status(item, facts, now)
        if status.to_wire() != (item.get("status") or {}):
            changed[str(item["metadata"]["name"])] = status
    return changed


def _status(item: Object, facts: TenantFacts, now: float) -> TenantStatus:
    name = str(item["metadata"]["name"])
    count, use = facts.counts.get(name, TenantCounts()), facts.uses.get(name, TenantUse())
    placed = facts.tree.tenants.get(name)
    return TenantStatus(
        namespaces=facts.tenancy.namespaces_of(name),
        jobs=count.jobs,
        never_preempted_gpus=count.never_preempted_gpus,
        parent=placed.parent if placed is not None else "",
        guaranteed=_most_types(use.guaranteed),
        used=_most_types(use.used),
        borrowed=_most_types(use.borrowed),
        lent=_most_types(use.lent),
        waiting=_most_types(use.waiting),
        gpu_hours=facts.hours.get(name),
        summary=_summary(use),
        conditions=_conditions(item, facts.tenancy, facts.tree, now),
    )


def only_hours_differ(item: Object, status: TenantStatus) -> bool:
    """Whether the written status says all but the newest GPU-hours."""
    return _without_hours(item.get("status") or {}) == _without_hours(status.to_wire())


def gpus_text(gpus: Mapping[str, int]) -> str:
    """GPUs by type as text, such as `8 A100, 4 V100`; those that may be of several types without one."""
    listed = [f"{count} {kind}" if kind != ANY_TYPE else str(count) for kind, count in sorted(gpus.items()) if count]
    return ", ".join(listed[:_SHOWN_TYPES]) + (", ..." if len(listed) > _SHOWN_TYPES else "")


def _most_types(gpus: Mapping[str, int]) -> dict[str, int]:
    """As many types as a status has room for: those of which there are most GPUs."""
    by_size = sorted(gpus, key=lambda kind: (-gpus[kind], kind))
    return {kind: gpus[kind] for kind in sorted(by_size[:MOST_TYPES])}


def _summary(use: TenantUse) -> TenantSummary | None:
    texts = {
        "guaranteed": gpus_text(use.guaranteed),
        "used": gpus_text(use.used),
        "borrowed": gpus_text(use.borrowed),
        "waiting": gpus_text(use.waiting),
    }
    return TenantSummary(**texts) if any(texts.values()) else None


def _conditions(item: Object, tenancy: Tenancy, tree: TenantTree, now: float) -> list[Condition]:
    """`Valid` of each Tenant, `InTree` of those that name a parent, `GuaranteeKept` of those that have a guarantee."""
    name = str(item["metadata"]["name"])
    namespaces = tenancy.namespaces_of(name)
    if name in tenancy.problems:
        finding = say(Reason.INVALID_TENANT, problem=tenancy.problems[name])
    elif not namespaces and name not in tree.children:
        finding = say(Reason.NO_NAMESPACES)
    else:
        finding = say(Reason.TENANT_ESTABLISHED, namespaces=namespaces)
    placed = tree.tenants.get(name)
    found = [(VALID, finding)]
    if placed is not None and placed.link is not None:
        found.append((IN_TREE, placed.link))
    if placed is not None and placed.kept is not None:
        found.append((GUARANTEE_KEPT, placed.kept))
    return [condition(item, one, holds=one.reason in _WELL, now=now, kind=kind) for kind, one in found]


def _without_hours(status: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in status.items() if field != "gpuHours"}
