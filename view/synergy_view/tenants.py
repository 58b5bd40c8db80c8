"""The tree of Tenants, as their status tells it: what each has, uses, borrows, lends and waits for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from synergy_api.cluster.tenancy import read_tenancy
from synergy_api.resources.tenant_status import ANY_TYPE, TenantStatus

Object = dict[str, Any]
Gpus = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRow:
    """A Tenant. GPUs and GPU-hours are by GPU type, with those of its children. `level` is 0 for a root; `problems`
    are conditions that do not hold."""

    tenant: str
    parent: str
    level: int
    weight: float
    namespaces: int
    jobs: int
    guaranteed: Gpus = field(default_factory=dict)
    limit: Gpus = field(default_factory=dict)
    used: Gpus = field(default_factory=dict)
    borrowed: Gpus = field(default_factory=dict)
    lent: Gpus = field(default_factory=dict)
    waiting: Gpus = field(default_factory=dict)
    gpu_hours_day: Mapping[str, float] = field(default_factory=dict)
    gpu_hours_week: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def tenant_rows(objects: Iterable[Object]) -> list[TenantRow]:
    """Each Tenant below its parent, siblings in order of name. Fields of a newer version are left out."""
    read = {str(item["metadata"]["name"]): (item, _status(item)) for item in objects}
    children: dict[str, list[str]] = {}
    for name, (_, status) in sorted(read.items()):
        children.setdefault(status.parent if status.parent in read else "", []).append(name)

    def below(parent: str, level: int) -> Iterator[TenantRow]:
        for name in children.pop(parent, ()):
            item, status = read[name]
            yield _row(item, status, level)
            yield from below(name, level + 1)

    found = list(below("", 0))
    while children:  # status of two moments can form a circle
        found += below(min(children), 0)
    return found


def tenants_above(objects: Iterable[Object], namespace: Object, declared: str) -> list[TenantRow]:
    """The Tenant that a job of the namespace counts for, and those above it; nothing if that is no Tenant. `declared`
    is the job's spec.tenant."""
    listed = list(objects)
    tenancy = read_tenancy(listed, [namespace])
    rows = {row.tenant: row for row in tenant_rows(listed)}
    found: list[TenantRow] = []
    name = tenancy.established(str(namespace["metadata"]["name"]), declared).name
    while name in rows and rows[name] not in found:
        found.append(rows[name])
        name = rows[name].parent
    return found


def gpus_in_types(gpus: Mapping[str, float]) -> str:
    """Such as `8 A100, 4 V100`; those that may be of several types without one; `-` for none."""
    listed = [f"{count:g} {kind}" if kind != ANY_TYPE else f"{count:g}" for kind, count in sorted(gpus.items())]
    return ", ".join(listed) or "-"


def _row(item: Object, status: TenantStatus, level: int) -> TenantRow:
    spec, hours = item.get("spec") or {}, status.gpu_hours
    return TenantRow(
        tenant=str(item["metadata"]["name"]),
        parent=status.parent,
        level=level,
        weight=float(spec.get("weight", 1.0)),
        namespaces=status.namespaces,
        jobs=status.jobs,
        guaranteed=status.guaranteed,
        limit=dict(spec.get("limit") or {}),
        used=status.used,
        borrowed=status.borrowed,
        lent=status.lent,
        waiting=status.waiting,
        gpu_hours_day=hours.day if hours is not None else {},
        gpu_hours_week=hours.week if hours is not None else {},
        problems=tuple(f"{one.reason}: {one.message}" for one in status.conditions if one.status == "False"),
    )


def _status(item: Object) -> TenantStatus:
    return TenantStatus.model_validate(item.get("status") or {}, extra="ignore")
