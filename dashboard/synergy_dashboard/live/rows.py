"""The rows of the cluster, updated by each change. A change of a job updates only the rows that contain it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from synergy_api.cluster.pools import NodeCapacity
from synergy_dashboard.live.changes import Group, RowChanges, reasons_of, tenants_of
from synergy_dashboard.live.scope import Scope
from synergy_view.queue import QueueRow, queue_order, queue_row, waits
from synergy_view.seen import SeenJob
from synergy_view.top import (
    JobRow,
    NodeRow,
    TenantRow,
    TypeRow,
    gpus_given,
    gpus_wanted,
    job_row,
    node_row,
    nodes_held,
    tenant_row,
    type_rows,
    type_sizes,
)

Order = tuple[bool, int, float, str]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A row of the queue, made at `at`, and its sort key."""

    row: QueueRow
    order: Order
    at: float

    def now(self, now: float) -> QueueRow:
        return replace(self.row, waiting_s=max(0.0, self.row.waiting_s + now - self.at))

    def says_as(self, other: "_Waiting | None") -> bool:
        """True if nothing but the time differs."""
        return other is not None and replace(self.row, waiting_s=other.row.waiting_s) == other.row


class Rows:
    """Jobs, nodes and all rows made of them. Times are in seconds since the epoch."""

    def __init__(self) -> None:
        self.jobs: dict[str, SeenJob] = {}
        self.capacities: dict[str, NodeCapacity] = {}
        self._running: dict[str, JobRow] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._nodes: dict[str, NodeRow] = {}
        self._on_node: dict[str, set[str]] = defaultdict(set)
        self._sizes: Mapping[str, tuple[int, int]] = {}
        self._given = Counter[str]()
        self._wanted = Counter[tuple[str, ...]]()
        self._types: list[TypeRow] = []
        self._members: dict[Group, set[str]] = defaultdict(set)
        self._groups: dict[Group, TenantRow] = {}
        self._reasons: dict[str, Counter[str]] = defaultdict(Counter)
        self._changed = RowChanges()
        self._stale_nodes: set[str] = set()
        self._stale_groups: set[Group] = set()
        self._types_stale = self._reasons_stale = False

    @property
    def namespaces(self) -> set[str]:
        """Namespaces that have jobs."""
        return {namespace for (_, namespace), jobs in self._members.items() if jobs}

    @property
    def stale(self) -> bool:
        """True if `take` would return a change, including the parts about all jobs."""
        return bool(self._changed or self._stale_nodes) or self._whole_stale

    @property
    def _whole_stale(self) -> bool:
        return bool(self._stale_groups) or self._types_stale or self._reasons_stale

    def put(self, job: SeenJob, now: float) -> None:
        """A job was created or changed."""
        name, old = job.full_name, self.jobs.get(job.full_name)
        self.jobs[name] = job
        if old is None or _counted(old) != _counted(job):  # progress alone changes no sum
            self._count(old, -1)
            self._count(job, 1)
        self._set_running(name, job_row(job) if not job.finished and job.gpus_held else None)
        entry = _Waiting(queue_row(job, now), queue_order(job), now) if waits(job) else None
        self._set_waiting(name, entry)

    def drop(self, name: str) -> None:
        """A job was deleted."""
        self._count(self.jobs.pop(name, None), -1)
        self._set_running(name, None)
        self._set_waiting(name, None)

    def set_nodes(self, capacities: Iterable[NodeCapacity]) -> None:
        """The nodes with GPUs, all of them."""
        new = {one.name: one for one in capacities}
        for name in self.capacities.keys() | new.keys():
            if self.capacities.get(name) != new.get(name):
                self._stale_nodes.add(name)
        self.capacities = new
        sizes = type_sizes(new.values())
        self._types_stale |= sizes != self._sizes
        self._sizes = sizes

    def take(self, now: float, *, whole: bool = True) -> RowChanges:
        """The changes since the last call. The parts about all jobs are included only with `whole`."""
        self._refresh_nodes()
        if whole:
            self._refresh_whole(now)
        changes, self._changed = self._changed, RowChanges()
        return changes

    def running(self, scope: Scope) -> list[JobRow]:
        """The jobs that hold GPUs, the most GPUs first."""
        rows = [scope.job(row) for name, row in self._running.items() if scope.names(name)]
        return sorted(rows, key=lambda row: (-row.gpus, row.job))

    def queue(self, scope: Scope, now: float) -> list[QueueRow]:
        """The waiting jobs in order."""
        visible = [one for name, one in self._waiting.items() if scope.names(name)]
        return [one.now(now) for one in sorted(visible, key=lambda one: one.order)]

    def waiting_names(self) -> Iterable[str]:
        """The waiting jobs, unsorted."""
        return self._waiting.keys()

    def running_names(self) -> Iterable[str]:
        """The jobs that hold GPUs, unsorted."""
        return self._running.keys()

    def nodes(self, scope: Scope) -> list[NodeRow]:
        """The nodes by name."""
        self._refresh_nodes()
        return [scope.node(self._nodes[name]) for name in sorted(self._nodes)]

    def types(self, now: float) -> list[TypeRow]:
        """The GPU types by name."""
        self._refresh_whole(now)
        return self._types

    def tenants(self, scope: Scope, now: float) -> list[TenantRow]:
        """The tenants by name, from their visible jobs."""
        self._refresh_whole(now)
        return tenants_of(self._groups, scope)

    def reasons(self, scope: Scope) -> dict[str, int]:
        """Number of visible waiting jobs by reason."""
        return reasons_of(self._reasons, scope)

    def tenants_hidden(self, scope: Scope) -> int:
        """Number of tenants without a visible job."""
        present = [group for group, jobs in self._members.items() if jobs]
        visible = {tenant for tenant, namespace in present if scope.sees(namespace)}
        return len({tenant for tenant, _ in present} - visible)

    def renew_tenants(self, now: float) -> None:
        """Count GPU-hours of open runs up to now."""
        self._stale_groups.update(self._members)
        self._refresh_whole(now)

    def _count(self, job: SeenJob | None, sign: int) -> None:
        """Add a job to the sums over jobs, or subtract it."""
        if job is None:
            return
        for node in nodes_held(job):
            (self._on_node[node].add if sign > 0 else self._on_node[node].discard)(job.full_name)
            self._stale_nodes.add(node)
        for gpu_type, gpus in gpus_given(job).items():
            _add(self._given, gpu_type, sign * gpus)
            self._types_stale = True
        for types, gpus in gpus_wanted(job).items():
            _add(self._wanted, types, sign * gpus)
            self._types_stale = True
        group = job.tenant, job.namespace
        (self._members[group].add if sign > 0 else self._members[group].discard)(job.full_name)
        self._stale_groups.add(group)

    def _set_running(self, name: str, row: JobRow | None) -> None:
        if self._running.get(name) == row:
            return
        _set(self._running, name, row)
        self._changed.jobs[name] = row

    def _set_waiting(self, name: str, entry: _Waiting | None) -> None:
        old = self._waiting.get(name)
        if old is None and entry is None:
            return
        told = entry is None or not entry.says_as(old)
        for one, count in ((old, -1), (entry, 1)):
            if one is not None:
                _add(self._reasons[one.row.namespace], one.row.reason, count)
        self._reasons_stale |= (old and old.row.reason) != (entry and entry.row.reason)
        _set(self._waiting, name, entry)
        if told:
            self._changed.queue[name] = None if entry is None else entry.row

    def _refresh_nodes(self) -> None:
        for name in self._stale_nodes:
            capacity = self.capacities.get(name)
            members = self._on_node.get(name, ())
            row = None if capacity is None else node_row(capacity, (self.jobs[one] for one in sorted(members)))
            if self._nodes.get(name) != row:
                _set(self._nodes, name, row)
                self._changed.nodes[name] = row
            if not members:
                self._on_node.pop(name, None)
        self._stale_nodes.clear()

    def _refresh_whole(self, now: float) -> None:
        if self._types_stale:
            types = type_rows(self._sizes, self._given, self._wanted)
            if types != self._types:
                self._types = self._changed.types = types
        if self._reasons_stale:
            self._changed.reasons = {name: Counter(own) for name, own in self._reasons.items() if own}
        if self._stale_groups:
            self._refresh_groups(now)
        self._types_stale = self._reasons_stale = False

    def _refresh_groups(self, now: float) -> None:
        changed = False
        for group in self._stale_groups:
            members = self._members.get(group)
            row = tenant_row(group[0], [self.jobs[name] for name in sorted(members)], now) if members else None
            changed |= self._groups.get(group) != row
            _set(self._groups, group, row)
            if not members:
                self._members.pop(group, None)
        self._stale_groups.clear()
        if changed:
            self._changed.groups = dict(self._groups)


def _counted(job: SeenJob) -> tuple[object, ...]:
    """The fields of a job that enter the sums over jobs and the rows of nodes."""
    spec, status = job.spec, job.status
    return job.tenant, job.finished, spec.gpus, spec.gpu_types, status.allocation, status.service


def _add(counts: Counter[str] | Counter[tuple[str, ...]], key: str | tuple[str, ...], number: int) -> None:
    """Add to a count, and remove it when it is 0."""
    counter: Counter[object] = counts  # type: ignore[assignment]
    counter[key] += number
    if not counter[key]:
        del counter[key]


def _set(rows: dict, name: object, row: object) -> None:  # type: ignore[type-arg]
    if row is None:
        rows.pop(name, None)
    else:
        rows[name] = row
