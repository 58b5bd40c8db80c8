"""The teams of a plan: which of its jobs are planned as one."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from synergy_core.colocation.grouping import Group, Grouping
from synergy_core.colocation.pairing import Pairing
from synergy_core.colocation.team import Team, alone_again, new_team, running_team
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation, Job, Snapshot
from synergy_core.policies.queue import Ranking


@dataclass(frozen=True, slots=True)
class Teams:
    """Teams by the name of the job that stands for each, and of each member."""

    by_name: Mapping[str, Team]
    by_member: Mapping[str, Team]

    def jobs(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs as they are planned."""
        rest = [job for job in jobs if job.name not in self.by_member]
        return [*rest, *(team.job for team in self.by_name.values())]

    def ranking(self, ranking: Ranking) -> Ranking:
        """The line as it is planned: a team stands where its first member does."""
        if not self.by_name:
            return ranking
        names = dict.fromkeys(self._planned(name) for name in ranking.names)
        types = dict(ranking.types)
        for name, team in self.by_name.items():
            given = [types.pop(job.name, None) for job in team.members]
            if team.job.gpu_types and len(team.members) > 1:
                types[name] = team.job.gpu_types
            elif given[0] is not None:
                types[name] = given[0]
        first = dict.fromkeys(self._planned(name) for name in ranking.first)
        return replace(ranking, names=tuple(names), types=types, first=tuple(first))

    def planned(self, names: frozenset[str]) -> frozenset[str]:
        """The names under which these jobs are planned."""
        return frozenset(self._planned(name) for name in names)

    def allocations(self, given: Allocation, pool: Pool) -> list[Allocation]:
        """What the jobs get."""
        team = self.by_name.get(given.job)
        return [given] if team is None else team.allocations(given, pool)

    def members(self, job: Job) -> Sequence[Job]:
        """The jobs that a planned job stands for."""
        team = self.by_name.get(job.name)
        return (job,) if team is None else team.members

    def leaves(self, job: Job) -> bool:
        """Whether a running job's place is taken from it."""
        team = self.by_member.get(job.name)
        if team is None or team.stays:
            return False
        return all(member.running is None for member in team.members if member.name == job.name)

    def unseated(
        self, seated: Container[str], idle: frozenset[str], quota_full: Container[str]
    ) -> frozenset[frozenset[str]]:
        """The members of teams that were given no GPU while there is one idle of a type (`idle`) that one could use, or
        because of a quota of one of them (`quota_full`).

        Where few of a type's GPUs can be shared, more groups can be made than find one.
        """
        return frozenset(
            frozenset(job.name for job in team.members)
            for name, team in self.by_name.items()
            if len(team.members) > 1
            and name not in seated
            and (name in quota_full or any(idle.intersection(job.gpu_types or idle) for job in team.members))
        )

    def _planned(self, name: str) -> str:
        team = self.by_member.get(name)
        return name if team is None else team.job.name


NO_TEAMS = Teams({}, {})


def groups_of(snapshot: Snapshot, ranking: Ranking, config: PlanConfig, grouping: Grouping) -> list[Group]:
    """Who is to share a GPU from this round on; nobody between rounds, when those who share go on as they are."""
    if config.mode == "fill" or config.colocation == "none" or not grouping.rules.anywhere:
        return []
    jobs = {job.name: job for job in snapshot.jobs}
    groups = _chosen(ranking, jobs, grouping)
    if config.colocation == "gavel":
        return groups
    line = [jobs[name] for name in ranking.names]
    of_member = {name: unit for unit in _units(jobs) for name in unit}
    return Pairing(grouping, config, of_member).groups(line, ranking.types, groups)


def teams_of(
    snapshot: Snapshot, ranking: Ranking, pools: Sequence[Pool], config: PlanConfig, groups: Sequence[Group]
) -> Teams:
    """Between rounds those who share go on as they are; at a round's beginning the groups are formed."""
    jobs = {job.name: job for job in snapshot.jobs}
    units = _units(jobs)
    nodes = {node.name for pool in pools for node in pool.nodes}
    if config.mode == "fill":
        there = [unit for unit in units if all(_is_on(jobs[name], nodes) for name in unit)]
        return _teams([running_team([jobs[name] for name in unit]) for unit in there])
    if not units and not groups:
        return NO_TEAMS
    return _placed(groups, units, jobs, ranking.names, pools)


def _chosen(ranking: Ranking, jobs: Mapping[str, Job], grouping: Grouping) -> list[Group]:
    """The pairs that the allocation matrix has put together in this round."""
    found = [grouping.together([jobs[name] for name in names], gpu_type) for gpu_type, names in ranking.together]
    return [group for group in found if group is not None]


def _placed(
    groups: Sequence[Group],
    units: Sequence[tuple[str, ...]],
    jobs: Mapping[str, Job],
    line: Sequence[str],
    pools: Sequence[Pool],
) -> Teams:
    """Of the groups that have members from one GPU the first in line keeps it; each group keeps one GPU."""
    unit_of = {name: index for index, unit in enumerate(units) for name in unit}
    rank = {name: place for place, name in enumerate(line)}
    grouped = {job.name for group in groups for job in group.jobs}
    alone = [name for unit in units for name in unit if name not in grouped]
    taken: set[int] = set()
    teams: list[Team] = []
    by_type = {pool.gpu_type: pool for pool in pools}
    everyone: list[tuple[int, Group | str]] = [(min(rank[job.name] for job in group.jobs), group) for group in groups]
    everyone += [(rank.get(name, len(rank)), name) for name in alone]
    for _, one in sorted(everyone, key=lambda entry: entry[0]):
        if isinstance(one, str):
            if unit_of[one] in taken:
                teams.append(alone_again(jobs[one]))
            taken.add(unit_of[one])
        else:
            teams.append(_team(one, unit_of, taken, by_type))
    return _teams(teams)


def _team(group: Group, unit_of: Mapping[str, int], taken: set[int], pools: Mapping[str, Pool]) -> Team:
    home: int | str | None = None
    kept = []
    allowed = {node.name for node in group.nodes}
    for member in group.members:
        job = member.job
        stays = False
        there = job.running is not None and all(share.node in allowed for share in job.running.workers)
        if there and job.running is not None and job.running.gpu_type == group.gpu_type:
            mine: int | str = unit_of.get(job.name, job.name)
            stays = mine == home or (home is None and mine not in taken)
            home = mine if stays else home
        kept.append(member if stays or job.running is None else replace(member, job=replace(job, running=None)))
    if isinstance(home, int):
        taken.add(home)
    members = [member.job for member in kept]
    on = {group.gpu_type: tuple(kept)}
    return new_team(members, on, group.nodes, pools, by_fractions=group.by_fractions)


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


def _teams(teams: Sequence[Team]) -> Teams:
    if not teams:
        return NO_TEAMS
    return Teams({team.job.name: team for team in teams}, {job.name: team for team in teams for job in team.members})
