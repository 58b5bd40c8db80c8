"""What changed between two moments, and which subscribers get it."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from synergy_dashboard.live.scope import Scope
from synergy_view.queue import QueueRow
from synergy_view.top import JobRow, NodeRow, TenantRow, TypeRow

Group = tuple[str, str]
"""(tenant, namespace)."""


@dataclass(slots=True)
class RowChanges:
    """Rows by name, None where one went. The parts about all jobs are whole, None where nothing in them changed."""

    jobs: dict[str, JobRow | None] = field(default_factory=dict)
    queue: dict[str, QueueRow | None] = field(default_factory=dict)
    nodes: dict[str, NodeRow | None] = field(default_factory=dict)
    types: list[TypeRow] | None = None
    groups: Mapping[Group, TenantRow] | None = None
    """Tenants by namespace: a user sees the sum over the namespaces that are not hidden."""
    reasons: Mapping[str, Counter[str]] | None = None
    """By namespace, how many jobs wait for which reason."""
    policy: bool = False
    """Whether another policy is written or in force."""

    def __bool__(self) -> bool:
        whole = (self.types, self.groups, self.reasons)
        return bool(self.jobs or self.queue or self.nodes or self.policy) or any(part is not None for part in whole)

    def merge(self, later: "RowChanges") -> None:
        """Take what changed since as well."""
        self.jobs |= later.jobs
        self.queue |= later.queue
        self.nodes |= later.nodes
        self.types = self.types if later.types is None else later.types
        self.groups = self.groups if later.groups is None else later.groups
        self.reasons = self.reasons if later.reasons is None else later.reasons
        self.policy = self.policy or later.policy

    def seen_by(self, scope: Scope) -> "RowChanges":
        """Without the rows and names of hidden namespaces."""
        if scope.everything:
            return self
        return RowChanges(
            jobs={name: row and scope.job(row) for name, row in self.jobs.items() if scope.names(name)},
            queue={name: row for name, row in self.queue.items() if scope.names(name)},
            nodes={name: row and scope.node(row) for name, row in self.nodes.items()},
            types=self.types,
            groups=self.groups,
            reasons=self.reasons,
            policy=self.policy,
        )


def tenants_of(groups: Mapping[Group, TenantRow], scope: Scope) -> list[TenantRow]:
    """The tenants by name, each the sum of its visible namespaces."""
    found: dict[str, list[TenantRow]] = {}
    for tenant, namespace in sorted(groups):
        if scope.sees(namespace):
            found.setdefault(tenant, []).append(groups[tenant, namespace])
    return [_sum(tenant, rows) for tenant, rows in found.items()]


def reasons_of(reasons: Mapping[str, Counter[str]], scope: Scope) -> dict[str, int]:
    """How many of the visible jobs wait for which reason, the most first."""
    found = Counter[str]()
    for namespace, own in reasons.items():
        if scope.sees(namespace):
            found.update(own)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _sum(tenant: str, rows: Iterable[TenantRow]) -> TenantRow:
    listed = list(rows)
    return TenantRow(
        tenant=tenant,
        running=sum(row.running for row in listed),
        waiting=sum(row.waiting for row in listed),
        gpus_given=sum(row.gpus_given for row in listed),
        gpus_wanted=sum(row.gpus_wanted for row in listed),
        gpu_hours=sum(row.gpu_hours for row in listed),
    )


class Subscriber:
    """Gets changes. Changes that come while it is busy are merged: a slow one needs no more memory."""

    def __init__(self, user: str = "") -> None:
        self.user = user
        self._pending = RowChanges()
        self._there = asyncio.Event()

    def tell(self, changes: RowChanges) -> None:
        """Add what changed."""
        self._pending.merge(changes)
        self._there.set()

    async def next(self, seconds: float) -> RowChanges | None:
        """What changed since the last call; None when nothing has for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._there.wait()
        except TimeoutError:
            return None
        self._there.clear()
        changes, self._pending = self._pending, RowChanges()
        return changes
