"""The tenants of a cluster: a tree with what each is guaranteed, and how much it may hold, borrow and lend."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import ConfigDict

from synergy_core.model.snapshot.limits import STRICT, Count, FieldError, Name, Weight, unique


@dataclass(frozen=True, slots=True)
class Tenant:
    """One of several organisations, departments, teams or users that share the cluster.

    The amounts are whole GPUs, by GPU type. They hold for the tenant's own jobs and those of all tenants below it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    weight: Weight = 1.0
    """Its part beside its siblings: of the cluster under `hierarchical` (Gavel, section 4.3), else of what is lent."""
    policy: Literal["fairness", "fifo"] = "fairness"
    """Under `hierarchical`, how its part is allocated to its jobs: by their weights, or in the order of arrival."""
    parent: Name | None = None
    """The tenant that it is a part of; null: none."""
    guarantee: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """What its jobs get whenever they ask for it; 0 of types that are missing."""
    limit: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """The most that its jobs may hold; no limit on types that are missing."""
    borrowing: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """The most that its jobs may hold beyond the guarantee; no such limit on types that are missing."""
    lending: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """The most of its unclaimed guarantee that others may use; all of it on types that are missing."""

    preemptions_per_hour: Count | None = None
    """How many times an hour its jobs may be preempted, and those of all tenants below it; null: no such limit."""
    preempted: Count = 0
    """How many times jobs of its own that the snapshot does not have were preempted within the last hour."""

    @property
    def binds(self) -> bool:
        """Whether it says anything that a plan must keep."""
        return bool(self.guarantee or self.limit or self.borrowing)


def check_tenants(tenants: Sequence[Tenant]) -> None:
    """Raise FieldError for the first thing that is wrong with the tree."""
    unique("tenants", [tenant.name for tenant in tenants])
    for index, path, problem in tenant_problems(tenants):
        raise FieldError(f"tenants[{index}].{path}", problem)


def tenant_problems(tenants: Sequence[Tenant]) -> Iterator[tuple[int, str, str]]:
    """What is wrong with a tree: index of the tenant, its field, and what to change. Names must differ."""
    by_name = {tenant.name: tenant for tenant in tenants}
    for index, tenant in enumerate(tenants):
        if tenant.parent is not None and tenant.parent not in by_name:
            yield index, "parent", f"{tenant.parent!r} is not in tenants; add it there, or leave parent out"
        elif _is_in_circle(tenant, by_name):
            yield index, "parent", f"{tenant.parent!r} is below {tenant.name!r} itself; choose another parent"
        for gpu_type, guarantee in sorted(tenant.guarantee.items()):
            limit = tenant.limit.get(gpu_type, guarantee)
            children = sum(other.guarantee.get(gpu_type, 0) for other in tenants if other.parent == tenant.name)
            if guarantee > limit:
                yield index, f"guarantee.{gpu_type}", f"{guarantee} is above limit.{gpu_type} {limit}; lower it"
            if guarantee < children:
                yield index, f"guarantee.{gpu_type}", _too_small(guarantee, children)
        for gpu_type in sorted({name for other in tenants if other.parent == tenant.name for name in other.guarantee}):
            children = sum(other.guarantee.get(gpu_type, 0) for other in tenants if other.parent == tenant.name)
            if gpu_type not in tenant.guarantee and children:
                yield index, f"guarantee.{gpu_type}", _too_small(0, children)


def _too_small(guarantee: int, children: int) -> str:
    return f"{guarantee} is below {children}, the sum of its children's; raise it, or lower theirs"


def _is_in_circle(tenant: Tenant, by_name: Mapping[str, Tenant]) -> bool:
    above = by_name.get(tenant.parent or "")
    for _ in by_name:
        if above is None or above is tenant:
            return above is tenant
        above = by_name.get(above.parent or "")
    return False
