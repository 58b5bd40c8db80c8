"""Divides a cluster by what its jobs share: GPU types that no job, quota or budget connects are apart.

These connect GPU types:

* a job that may run on several, unless it has a home among them (`homes`), or that runs on nodes of another
* jobs that draw on one quota, that count against one preemption budget, or whose tenant has several classes
* jobs of urgent classes: one plan makes room for a limited number of them
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.policies.classes import has_classes


def parts(snapshot: Snapshot, homes: Mapping[str, str]) -> tuple[Snapshot, ...]:
    """The parts, by their first GPU type; the snapshot itself if there is one only. A job with a home may run there
    alone: if it runs elsewhere, it comes there as one that waits."""
    type_of = {node.name: node.gpu_type for node in snapshot.nodes}
    groups = _Groups(sorted(set(type_of.values())))
    limited = _Limited(snapshot)
    owner: dict[object, str] = {}
    places: dict[str, str] = {}
    for job in snapshot.jobs:
        touched = _touched(job, homes.get(job.name), type_of, groups.types)
        place = groups.joined(touched)
        places[job.name] = touched[0]
        for shared in limited.of(job):
            groups.joined((owner.setdefault(shared, place), place))
    members: dict[str, list[Job]] = {}
    for job in snapshot.jobs:
        home = homes.get(job.name)
        own = job if home is None else _at_home(job, home)
        members.setdefault(groups.of(places[job.name]), []).append(own)
    first = dict.fromkeys(map(groups.of, groups.types))
    if len(first) < 2 and not homes:
        return (snapshot,)
    return tuple(
        replace(
            snapshot,
            nodes=tuple([node for node in snapshot.nodes if groups.of(node.gpu_type) == one]),
            jobs=tuple(members.get(one, ())),
            node_groups=(),
        )
        for one in first
    )


def may_use(job: Job, type_of: Mapping[str, str], types: Iterable[str]) -> list[str]:
    """The GPU types that have nodes for the job, by name; where none has, those that it allows."""
    allowed = [one for one in types if not job.gpu_types or one in job.gpu_types]
    if job.nodes is None or len(allowed) < 2:
        return allowed
    there = {type_of.get(name) for name in job.nodes}
    return [one for one in allowed if one in there] or allowed


def _touched(job: Job, home: str | None, type_of: Mapping[str, str], types: list[str]) -> list[str]:
    """GPU types on which the job may run or has something; the first type if there is none."""
    if home is not None:
        return [home]
    found = [one for one in types if not job.gpu_types or one in job.gpu_types]
    if job.running is not None:
        held = {job.running.gpu_type, *(type_of.get(share.node) for share in job.running.workers)}
        found += [one for one in types if one in held and one not in found]
    return found or types[:1]


def _at_home(job: Job, home: str) -> Job:
    if job.running is None or job.running.gpu_type == home:
        return replace(job, gpu_types=(home,))
    return replace(job, gpu_types=(home,), running=None, run_started_s=None)


class _Limited:
    """Limits that several jobs share whatever GPU type they run on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._parents = {tenant.name: tenant.parent or "" for tenant in snapshot.tenants}
        self._budgets = {one.name for one in snapshot.tenants if one.preemptions_per_hour is not None}
        self._classes = has_classes(snapshot.jobs)

    def of(self, job: Job) -> list[object]:
        """Those of a job."""
        found: list[object] = [("quota", draw.quota) for draw in job.quotas]
        if job.urgent:
            found.append("urgent")
        if self._classes:
            found.append(("classes", job.tenant))
        name = job.tenant if self._budgets else ""
        while name in self._parents:
            if name in self._budgets:
                found.append(("budget", name))
            name = self._parents[name]
        return found


class _Groups:
    """Groups of GPU types (union-find), each named by its first one."""

    def __init__(self, types: list[str]) -> None:
        self.types = types
        self._above = {one: one for one in types}

    def of(self, one: str) -> str:
        """The name of the group."""
        while self._above[one] != one:
            one = self._above[one]
        return one

    def joined(self, types: Iterable[str]) -> str:
        """Make one group of all of theirs; its name."""
        roots = [self.of(one) for one in types]
        first = min(roots)
        for root in roots:
            self._above[root] = first
        return first
