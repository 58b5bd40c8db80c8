"""Which tenant a job counts for, from Tenant and Namespace objects. Pure.

A job's own `spec.tenant` only chooses among the tenants that its namespace belongs to.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import ValidationError

from synergy_api.cluster.nodes import Object, labels_of
from synergy_api.resources.tenant import LabelRequirement, NamespaceSelector, TenantCaps, TenantSpec

DEFAULT_CAPS = TenantCaps()


@dataclass(frozen=True)
class Tenant:
    """A Tenant by its name."""

    name: str
    spec: TenantSpec


@dataclass(frozen=True)
class Established:
    """The tenant that a job counts for. `allowed` are all that its namespace belongs to; `refused` says that the job
    names another."""

    name: str
    caps: TenantCaps
    allowed: tuple[str, ...]
    refused: bool


@dataclass(frozen=True)
class Tenancy:
    """Who belongs to which tenant.

    `labels` are those of each namespace. `problems` has what is wrong with each Tenant that does not parse. Such a
    Tenant has no namespace, but its name stays taken.
    """

    tenants: tuple[Tenant, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _of_namespace(self) -> dict[str, tuple[Tenant, ...]]:
        return {}

    @cached_property
    def _namespaces(self) -> Counter[str]:
        return Counter(one.name for namespace in self.labels for one in self.tenants_of(namespace))

    @cached_property
    def _taken(self) -> frozenset[str]:
        return frozenset(self.problems) | {tenant.name for tenant in self.tenants}

    def tenants_of(self, namespace: str) -> tuple[Tenant, ...]:
        """The Tenants that the namespace belongs to, the one for jobs that name none first."""
        known = self._of_namespace.get(namespace)
        if known is None:
            labels = self.labels.get(namespace)
            found = [tenant for tenant in self.tenants if belongs(tenant.spec, namespace, labels)]
            known = tuple(sorted(found, key=lambda tenant: (not tenant.spec.default, tenant.name)))
            self._of_namespace[namespace] = known
        return known

    def namespaces_of(self, tenant: str) -> int:
        """How many namespaces belong to the Tenant."""
        return self._namespaces[tenant]

    def established(self, namespace: str, declared: str) -> Established:
        """The tenant that a job of the namespace counts for which has `declared` as its spec.tenant."""
        tenants = self.tenants_of(namespace)
        if not tenants:
            own = self._own(namespace)
            return Established(own, DEFAULT_CAPS, (own,), refused=declared not in ("", own))
        chosen = next((tenant for tenant in tenants if tenant.name == declared), tenants[0])
        allowed = tuple(tenant.name for tenant in tenants)
        return Established(chosen.name, chosen.spec.caps, allowed, refused=declared not in ("", chosen.name))

    def _own(self, namespace: str) -> str:
        """The tenant of a namespace that no Tenant has. A namespace cannot become a Tenant by taking its name."""
        return f"namespace/{namespace}" if namespace in self._taken else namespace


def belongs(spec: TenantSpec, namespace: str, labels: Mapping[str, str] | None) -> bool:
    """Whether the namespace belongs to the tenant. `labels` is None for a namespace that has not been seen: no selector
    selects it."""
    if namespace in spec.namespaces:
        return True
    return labels is not None and spec.namespace_selector is not None and selects(spec.namespace_selector, labels)


def selects(selector: NamespaceSelector, labels: Mapping[str, str]) -> bool:
    """Whether the selector selects these labels, as Kubernetes' label selectors do."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _meets(requirement, labels) for requirement in selector.match_expressions
    )


def _meets(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    match requirement.operator:
        case "In":
            return labels.get(requirement.key) in requirement.values
        case "NotIn":
            return labels.get(requirement.key) not in requirement.values
        case "Exists":
            return requirement.key in labels
        case "DoesNotExist":
            return requirement.key not in labels


def read_tenancy(tenants: Iterable[Object], namespaces: Iterable[Object]) -> Tenancy:
    """What Tenant and Namespace objects say. A Tenant that does not parse is a problem that names the field."""
    read: list[Tenant] = []
    problems: dict[str, str] = {}
    for item in tenants:
        name = str(item["metadata"]["name"])
        try:
            read.append(Tenant(name, TenantSpec.model_validate(item.get("spec") or {})))
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part) for part in ("spec", *first["loc"]))
            problems[name] = f"{path}: {first['msg'].removeprefix('Value error, ')}"
    labels = {str(item["metadata"]["name"]): dict(labels_of(item)) for item in namespaces}
    return Tenancy(tuple(sorted(read, key=lambda tenant: tenant.name)), labels, problems)
