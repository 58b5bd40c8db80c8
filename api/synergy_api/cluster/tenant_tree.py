"""The tree of Tenants as plans take it: parents that fit, and guarantees that the cluster can keep. Pure.

What several Tenants say together can be wrong although each is valid alone. A wrong parent makes a tenant a root.
Guarantees that are too large are lowered in proportion, from the roots down: so nobody's guarantee takes what another's
parent, or the cluster, does not have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from synergy_api.cluster.tenancy import Tenant
from synergy_api.reasons import Finding, Reason, say

MOST_ABOVE: Final = 8
"""Tenants above one another: an organisation has fewer levels, and each costs the planner time."""

_MOST_SHOWN: Final = 16
"""Tenants of a cycle that its message names."""


@dataclass(frozen=True)
class TreeTenant:
    """A Tenant in the tree. `parent` is empty for a root; `guarantee` has what plans keep, by GPU type. `link` is what
    is found of its parent, `kept` of its guarantee; None without anything to say."""

    tenant: Tenant
    parent: str
    guarantee: Mapping[str, int]
    link: Finding | None = None
    kept: Finding | None = None

    @property
    def name(self) -> str:
        """The Tenant's name."""
        return self.tenant.name


@dataclass(frozen=True)
class TenantTree:
    """All valid Tenants by name, in order of name."""

    tenants: Mapping[str, TreeTenant] = field(default_factory=dict)

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The names of each tenant's children in order of name; those of the roots under the empty name."""
        found: dict[str, list[str]] = {}
        for one in self.tenants.values():
            found.setdefault(one.parent, []).append(one.name)
        return {parent: tuple(names) for parent, names in found.items()}

    def upwards(self, name: str) -> tuple[str, ...]:
        """The tenant and those above it, the root last. One that is no Tenant stands alone."""
        found = [name]
        while (one := self.tenants.get(found[-1])) is not None and one.parent:
            found.append(one.parent)
        return tuple(found)

    @property
    def shares_gpus(self) -> bool:
        """Whether any Tenant says something of GPUs or of a parent."""
        return any(
            one.parent or said.guarantee or said.limit or said.borrowing or said.lending
            for one in self.tenants.values()
            for said in (one.tenant.spec,)
        )


def tenant_tree(tenants: Iterable[Tenant], gpus: Mapping[str, int]) -> TenantTree:
    """The tree of valid Tenants in a cluster with these GPUs by type."""
    specs = {tenant.name: tenant for tenant in sorted(tenants, key=lambda tenant: tenant.name)}
    parents, links = _links(specs)
    guarantees = _Guarantees(specs, parents, gpus)
    return TenantTree(
        {
            name: TreeTenant(
                tenant, parents[name], guarantees.kept[name], links.get(name), guarantees.findings.get(name)
            )
            for name, tenant in specs.items()
        }
    )


def _links(specs: Mapping[str, Tenant]) -> tuple[dict[str, str], dict[str, Finding]]:
    """Each tenant's parent, and what is found of it."""
    parents, found = {}, {}
    for name, tenant in specs.items():
        parent = tenant.spec.parent
        parents[name] = parent if parent in specs else ""
        if parent:
            found[name] = say(Reason.PARENT_FOUND if parent in specs else Reason.UNKNOWN_PARENT, parent=parent)
    for cycle in _cycles(parents):
        shown = cycle if len(cycle) <= _MOST_SHOWN else (*cycle[: _MOST_SHOWN - 1], "...")
        words = " > ".join((*shown, cycle[0]))
        for name in cycle:
            parents[name] = ""
            found[name] = say(Reason.PARENT_CYCLE, cycle=words)
    for name in sorted(specs, key=lambda name: _above(name, parents)):
        if _above(name, parents) > MOST_ABOVE:
            parents[name] = ""
            found[name] = say(Reason.TREE_TOO_DEEP, most=MOST_ABOVE)
    return parents, found


def _cycles(parents: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The cycles, each from its first name on."""
    found: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in parents:
        path: list[str] = []
        name = start
        while name and name not in done and name not in path:
            path.append(name)
            name = parents[name]
        if name in path:
            cycle = path[path.index(name) :]
            first = cycle.index(min(cycle))
            found.append((*cycle[first:], *cycle[:first]))
        done.update(path)
    return found


def _above(name: str, parents: Mapping[str, str]) -> int:
    count = 0
    while name := parents[name]:
        count += 1
    return count


class _Guarantees:
    """What plans guarantee each tenant: what it asks for, from the leaves up, then lowered from the roots down."""

    def __init__(self, specs: Mapping[str, Tenant], parents: Mapping[str, str], gpus: Mapping[str, int]) -> None:
        self._specs = specs
        self._children: dict[str, list[str]] = {}
        for name, parent in parents.items():
            self._children.setdefault(parent, []).append(name)
        self._gpus = gpus
        self._asked: dict[str, dict[str, int]] = {name: {} for name in specs}
        self.kept: dict[str, dict[str, int]] = {name: {} for name in specs}
        self.findings: dict[str, Finding] = {}
        types = sorted({gpu_type for tenant in specs.values() for gpu_type in tenant.spec.guarantee})
        for gpu_type in types:
            for root in self._children.get("", ()):
                self._ask(root, gpu_type)
            self._keep("", gpu_type, gpus.get(gpu_type, 0))
        for name, asked in self._asked.items():
            if asked and name not in self.findings:
                self.findings[name] = say(Reason.GUARANTEE_COVERED)

    def _ask(self, name: str, gpu_type: str) -> int:
        """What the tenant asks for: its own guarantee, else its children's, within its limit."""
        spec = self._specs[name].spec
        below = sum(self._ask(child, gpu_type) for child in self._children.get(name, ()))
        asked = spec.guarantee.get(gpu_type, below)
        limit = spec.limit.get(gpu_type, asked)
        if asked > limit:
            facts = {"asked": asked, "type": gpu_type, "kept": limit}
            self.findings.setdefault(name, say(Reason.GUARANTEE_ABOVE_LIMIT, **facts))
        asked = min(asked, limit)
        if asked:
            self._asked[name][gpu_type] = asked
        return asked

    def _keep(self, parent: str, gpu_type: str, given: int, short: str = "") -> None:
        """Give the children their part of what the parent has, or of the cluster's GPUs. `short` is the tenant above
        whose children are guaranteed too much; empty for the cluster."""
        names = self._children.get(parent, ())
        asked = [self._asked[name].get(gpu_type, 0) for name in names]
        if parent and sum(asked) > self._asked[parent].get(gpu_type, 0):
            short = parent
        for name, wanted, kept in zip(names, asked, lowered(asked, given), strict=True):
            if kept:
                self.kept[name][gpu_type] = kept
            if kept < wanted:
                self._tell(name, short, gpu_type, kept)
            self._keep(name, gpu_type, kept, short)

    def _tell(self, name: str, short: str, gpu_type: str, kept: int) -> None:
        """Why the tenant's guarantee is lowered."""
        asked = sum(self._asked[child].get(gpu_type, 0) for child in self._children[short])
        facts: dict[str, object] = {"asked": asked, "type": gpu_type, "kept": kept}
        if short:
            facts |= {"parent": short, "given": self._asked[short].get(gpu_type, 0)}
            finding = say(Reason.GUARANTEES_ABOVE_PARENT, **facts)
        else:
            finding = say(Reason.GUARANTEES_ABOVE_CLUSTER, given=self._gpus.get(gpu_type, 0), **facts)
        self.findings.setdefault(name, finding)


def lowered(asked: Sequence[int], given: int) -> list[int]:
    """Whole parts of `given` in proportion to what is asked, where it does not suffice for all; the rest goes to the
    largest remainders, the first of equal ones."""
    total = sum(asked)
    if total <= given:
        return list(asked)
    parts = [one * given // total for one in asked]
    by_remainder = sorted(range(len(asked)), key=lambda index: (-(asked[index] * given % total), index))
    for index in by_remainder[: given - sum(parts)]:
        parts[index] += 1
    return parts
