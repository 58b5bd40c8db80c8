"""The groups of a plan: which of its jobs are planned as one."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from synergy_core.colocation.group import CoLocationGroup, alone_again, new_group, running_group
from synergy_core.colocation.grouping import Candidate, Grouping
from synergy_core.colocation.pairing import Pairing
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation, Job, Snapshot
from synergy_core.policies.queue import Ranking


@dataclass(frozen=True, slots=True)
class CoLocationGroups:
    """Co-location groups, by the name of the job that represents each, and by the name of each member."""

    by_name: Mapping[str, CoLocationGroup]
    by_member: Mapping[str, CoLocationGroup]

    def jobs(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs as they are planned."""
        rest = [job for job in jobs if job.name not in self.by_member]
        return [*rest, *(group.job for group in self.by_name.values())]

    def ranking(self, ranking: Ranking) -> Ranking:
        """The policy's order as it is planned: a group takes the position of its first member."""
        if not self.by_name:
            return ranking
        names = dict.fromkeys(self._planned(name) for name in ranking.names)
        types = dict(ranking.types)
        for name, group in self.by_name.items():
            given = [types.pop(job.name, None) for job in group.members]
            if group.job.gpu_types and len(group.members) > 1:
                types[name] = group.job.gpu_types
            elif given[0] is not None:
                types[name] = given[0]
        first = dict.fromkeys(self._planned(name) for name in ranking.first)
        return replace(ranking, names=tuple(names), types=types, first=tuple(first))

    def planned(self, names: frozenset[str]) -> frozenset[str]:
        """The names under which these jobs are planned."""
        return frozenset(self._planned(name) for name in names)

    def allocations(self, given: Allocation, pool: Pool) -> list[Allocation]:
        """What the jobs get."""
        group = self.by_name.get(given.job)
        return [given] if group is None else group.allocations(given, pool)

    def members(self, job: Job) -> Sequence[Job]:
        """The jobs that a planned job represents."""
        group = self.by_name.get(job.name)
        return (job,) if group is None else group.members

    def names_of(self, planned: str) -> tuple[str, ...]:
        """Names of the jobs that a planned job represents."""
        group = self.by_name.get(planned)
        return (planned,) if group is None else tuple(job.name for job in group.members)

    @property
    def members_by_name(self) -> dict[str, Sequence[Job]]:
        """The jobs of each group by the name under which it is planned."""
        return {name: group.members for name, group in self.by_name.items()}

    def leaves(self, job: Job) -> bool:
        """Whether a running job's place is taken from it."""
        group = self.by_member.get(job.name)
        if group is None or group.stays:
            return False
        return all(member.running is None for member in group.members if member.name == job.name)

    def unassigned(
        self, assigned: Container[str], idle: frozenset[str], quota_full: Container[str]
    ) -> frozenset[frozenset[str]]:
        """The members of each group that got no GPU, although one is idle of a type (`idle`) that a member could use,
        or because of a member's quota (`quota_full`).

        Where few of a type's GPUs can be shared, there can be more groups than such GPUs.
        """
        return frozenset(
            frozenset(job.name for job in group.members)
            for name, group in self.by_name.items()
            if len(group.members) > 1
            and name not in assigned
            and (name in quota_full or any(idle.intersection(job.gpu_types or idle) for job in group.members))
        )

    def _planned(self, name: str) -> str:
        group = self.by_member.get(name)
        return name if group is None else group.job.name


NO_GROUPS = CoLocationGroups({}, {})


def candidate_groups(
    snapshot: Snapshot, ranking: Ranking, config: PlanConfig, grouping: Grouping, *, protected: Container[str]
) -> list[Candidate]:
    """Jobs that could share a GPU from this round on. Between rounds there are none: those that share go on.

    Jobs that share a GPU now and are all `protected` go on together, unless one of them falls below what it must keep.
    """
    if config.mode == "fill" or config.colocation == "none" or not grouping.rules.anywhere:
        return []
    jobs = {job.name: job for job in snapshot.jobs}
    candidates = _chosen(ranking, jobs, grouping)
    if config.colocation == "gavel":
        return candidates
    line = [jobs[name] for name in ranking.names]
    units = _units(jobs)
    candidates += _protected_groups(units, jobs, grouping, protected, candidates)
    of_member = {name: unit for unit in units for name in unit}
    return Pairing(grouping, config, of_member).groups(line, ranking.types, candidates)


def _protected_groups(
    units: Sequence[tuple[str, ...]],
    jobs: Mapping[str, Job],
    grouping: Grouping,
    protected: Container[str],
    candidates: Sequence[Candidate],
) -> list[Candidate]:
    elsewhere = {job.name for candidate in candidates for job in candidate.jobs}
    found = []
    for unit in units:
        running = jobs[unit[0]].running
        if running is None or not all(name in protected and name not in elsewhere for name in unit):
            continue
        candidate = grouping.together([jobs[name] for name in unit], running.gpu_type)
        if candidate is not None and grouping.bearable(candidate):
            found.append(candidate)
    return found


def colocation_groups(
    snapshot: Snapshot,
    ranking: Ranking,
    pools: Sequence[Pool],
    config: PlanConfig,
    candidates: Sequence[Candidate],
) -> CoLocationGroups:
    """Jobs that share a GPU: between rounds those that do now, at a round's beginning the candidates."""
    jobs = {job.name: job for job in snapshot.jobs}
    units = _units(jobs)
    nodes = {node.name for pool in pools for node in pool.nodes}
    if config.mode == "fill":
        there = [unit for unit in units if _is_on(jobs[unit[0]], nodes)]  # a unit is on one node
        return _groups([running_group([jobs[name] for name in unit]) for unit in there])
    if not units and not candidates:
        return NO_GROUPS
    return _placed(candidates, units, jobs, ranking.names, pools)


def _chosen(ranking: Ranking, jobs: Mapping[str, Job], grouping: Grouping) -> list[Candidate]:
    """The pairs that the allocation matrix has put together in this round."""
    found = [grouping.together([jobs[name] for name in names], gpu_type) for gpu_type, names in ranking.together]
    return [candidate for candidate in found if candidate is not None]


def _placed(
    candidates: Sequence[Candidate],
    units: Sequence[tuple[str, ...]],
    jobs: Mapping[str, Job],
    line: Sequence[str],
    pools: Sequence[Pool],
) -> CoLocationGroups:
    """Of several candidates with members from one GPU, the highest in the queue keeps it. Each keeps one GPU."""
    unit_of = {name: index for index, unit in enumerate(units) for name in unit}
    rank = {name: place for place, name in enumerate(line)}
    in_candidates = {job.name for candidate in candidates for job in candidate.jobs}
    alone = [name for unit in units for name in unit if name not in in_candidates]
    taken: set[int] = set()
    groups: list[CoLocationGroup] = []
    by_type = {pool.gpu_type: pool for pool in pools}
    everyone: list[tuple[int, Candidate | str]] = [
        (min(rank[job.name] for job in candidate.jobs), candidate) for candidate in candidates
    ]
    everyone += [(rank.get(name, len(rank)), name) for name in alone]
    for _, one in sorted(everyone, key=lambda entry: entry[0]):
        if isinstance(one, str):
            if unit_of[one] in taken:
                groups.append(alone_again(jobs[one]))
            taken.add(unit_of[one])
        else:
            groups.append(_group(one, unit_of, taken, by_type))
    return _groups(groups)


def _group(
    candidate: Candidate, unit_of: Mapping[str, int], taken: set[int], pools: Mapping[str, Pool]
) -> CoLocationGroup:
    home: int | str | None = None
    kept = []
    allowed = {node.name for node in candidate.nodes}
    for member in candidate.members:
        job = member.job
        stays = False
        there = job.running is not None and all(share.node in allowed for share in job.running.workers)
        if there and job.running is not None and job.running.gpu_type == candidate.gpu_type:
            mine: int | str = unit_of.get(job.name, job.name)
            stays = mine == home or (home is None and mine not in taken)
            home = mine if stays else home
        kept.append(member if stays or job.running is None else replace(member, job=replace(job, running=None)))
    if isinstance(home, int):
        taken.add(home)
    members = [member.job for member in kept]
    on = {candidate.gpu_type: tuple(kept)}
    return new_group(members, on, candidate.nodes, pools, by_fractions=candidate.by_fractions)


def _units(jobs: Mapping[str, Job]) -> list[tuple[str, ...]]:
    """The jobs that have one GPU now, each unit sorted: all say so of each other, and run on one node."""
    found: dict[tuple[str, ...], None] = {}
    for name in sorted(jobs):
        running = jobs[name].running
        if running is None or not running.partners:
            continue
        there = [other for other in running.partners if _agree(jobs, name, other)]
        if there:
            found[tuple(sorted([name, *there]))] = None
    once: dict[str, tuple[str, ...]] = {}
    for unit in found:
        if not any(name in once for name in unit):
            once.update(dict.fromkeys(unit, unit))
    return list(dict.fromkeys(once.values()))


def _agree(jobs: Mapping[str, Job], name: str, other: str) -> bool:
    if other not in jobs:
        return False
    mine, theirs = jobs[name].running, jobs[other].running
    if mine is None or theirs is None or name not in theirs.partners:
        return False
    return [share.node for share in mine.workers] == [share.node for share in theirs.workers]


def _is_on(job: Job, nodes: set[str]) -> bool:
    return job.running is not None and all(share.node in nodes for share in job.running.workers)


def _groups(groups: Sequence[CoLocationGroup]) -> CoLocationGroups:
    if not groups:
        return NO_GROUPS
    return CoLocationGroups(
        {group.job.name: group for group in groups}, {job.name: group for group in groups for job in group.members}
    )
