"""What snapshots keep for the next: entitlements, nodes, runs and jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_api.amounts import Amounts
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.cluster.priority_classes import PriorityClasses
from synergy_api.cluster.tenancy import Tenancy
from synergy_core.model import snapshot as core
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.snapshot.entitlements import NO_CLASSES, Entitlement, Entitlements, entitlements
from synergy_extender.snapshot.known.jobs import KnownJobs
from synergy_extender.snapshot.nodes import node_of
from synergy_extender.snapshot.used_room import KnownRuns


class KnownEntitlements:
    """Those of jobs whose view, tenants and classes are the same as before. One job's `preemption: Never` can change
    what another has: these are worked out anew."""

    def __init__(self) -> None:
        self._tenancy: Tenancy | None = None
        self._classes = NO_CLASSES
        self._known: dict[Key, tuple[JobView, Entitlement]] = {}

    def of(self, jobs: Mapping[Key, JobView], tenancy: Tenancy, now: float, classes: PriorityClasses) -> Entitlements:
        """Like `entitlements`."""
        if tenancy is not self._tenancy or classes != self._classes:
            self._tenancy, self._classes, self._known = tenancy, classes, {}
        by_job: dict[Key, Entitlement] = {}
        before, self._known = self._known, {}
        anew = []
        for key, job in jobs.items():
            known = before.get(key)
            if known is not None and known[0] is job:
                by_job[key] = known[1]
                self._known[key] = known
            else:
                by_job[key] = _NONE
                anew.append(job)
        found = entitlements(anew, tenancy, now, classes)
        by_job.update(found.by_job)
        self._known |= {job.key: (job, by_job[job.key]) for job in anew if job.spec.preemption != "Never"}
        return Entitlements(by_job, found.waits)


_NONE = Entitlement(tenant="", weight=1.0, preemptible=True, deadline=True)
"""In the place of one that is worked out: it keeps the order of the jobs."""


class KnownNodes:
    """The planner's nodes whose capacity and use are the same as before. A node that closes at times is made anew: it
    depends on the moment."""

    def __init__(self) -> None:
        self._known: dict[str, _KnownNode] = {}
        self._next: dict[str, _KnownNode] = {}

    def __len__(self) -> int:
        return len(self._known.keys() | self._next.keys())

    def begin(self) -> None:
        """Another snapshot: nodes that the last one did not have are forgotten."""
        if self._next:
            self._known, self._next = self._next, {}

    def of(
        self, capacity: NodeCapacity, used: Amounts, *, open_to_new: bool, now: float, leaving_s: float
    ) -> core.Node:
        """Like `node_of`."""
        known = self._known.get(capacity.name)
        if known is not None and known[0] is capacity and known[1:3] == (used, open_to_new) and not capacity.closures:
            node = known[3]
        else:
            node = node_of(capacity, used, open_to_new=open_to_new, now=now, leaving_s=leaving_s)
        self._next[capacity.name] = (capacity, used, open_to_new, node)
        return node


_KnownNode = tuple[NodeCapacity, Amounts, bool, core.Node]


@dataclass(frozen=True, slots=True)
class KnownSnapshot:
    """For one caller that builds one snapshot after another."""

    jobs: KnownJobs = field(default_factory=KnownJobs)
    nodes: KnownNodes = field(default_factory=KnownNodes)
    entitled: KnownEntitlements = field(default_factory=KnownEntitlements)
    runs: KnownRuns = field(default_factory=KnownRuns)
