"""Co-located jobs as the planner sees them: as one job that every policy and mechanism can handle.

The group takes one GPU, and the CPU and memory that its members need together. Its matrix gives the members' progress:
the sum of their speeds, each relative to its own at the GPU-proportional share. The slower of two things limits a
member: its CPU and memory (its matrix, at its part of the group's), or the GPU (its fraction of its best speed). A job
that waits for its data anyway loses nothing to its partner, and the mechanisms see what CPU is still worth.

What a group gets is split by the members' demands. Where all demands fit, the rest is split equally. Otherwise each
member gets a part in proportion to its demand: no part shrinks when the group's grows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from synergy_core.model.pool import Pool
from synergy_core.model.resources import Vector, held_in, node_share, smaller
from synergy_core.model.snapshot import Allocation, Job, Node, NodeShare, Profile, merged_draws
from synergy_core.throughput.estimates import NO_SPEEDS
from synergy_core.throughput.job_class import JobClass
from synergy_core.throughput.speed import Speed

_POINTS = 10
"""Points of an axis of a group's matrix at the most."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A job of a group on one GPU type."""

    job: Job
    fraction: float
    speed: Speed | None
    best: float
    """Its best speed alone, with all the CPU and memory that it can use; 0 where it is not known."""
    usual: float
    """Its speed at the GPU-proportional share, within its own bounds."""
    most: Vector
    """Its demand vector alone."""
    demand: Vector
    """The CPU and memory with which it is as fast as it can be on a part of the GPU."""

    def steps_per_s(self, amounts: Vector) -> float:
        """Its speed with this CPU and memory, while it shares; 0 where that is not known.

        Without a matrix nothing says what it makes of CPU and memory: it is the GPU's part of what was measured.
        """
        of_gpu = self.fraction * self.best
        return of_gpu if self.speed is None else min(self.speed.at(amounts[:2]), of_gpu)

    def keeping(self, fraction: float) -> "GroupMember":
        """The same on another part of the GPU."""
        if fraction == self.fraction or self.speed is None:
            return replace(self, fraction=fraction)
        demand = self.speed.smallest(fraction * self.best, self.most)
        low = (self.job.cpu_millis_min, self.job.memory_bytes_min)
        needed = tuple(max(1, one, least) for one, least in zip(demand, low, strict=True))
        return replace(self, fraction=fraction, demand=needed)

    def kept(self, amounts: Vector) -> float:
        """The same relative to its speed at the GPU-proportional share."""
        return self.steps_per_s(amounts) / self.usual if self.usual > 0 else self.fraction


def member(
    job: Job, pool: Pool, fraction: float, tolerance: float, speeds: Mapping[str, float] = NO_SPEEDS
) -> GroupMember:
    """What the job is on this pool when it keeps `fraction` of its best speed; `speeds` are those that are known of it
    on GPU types without a matrix."""
    terms = JobClass(replace_running(job, None), pool.further, tolerance, speeds).on(pool)
    usual = terms.steps_per_s(terms.proportional_to(pool.best_share))
    speed = terms.speed
    if speed is not None and pool.further:  # a group's matrix has no further axes
        speed = Speed(job.profiles[pool.gpu_type])
    whole = GroupMember(job, -1.0, speed, terms.best_steps_per_s, usual, terms.demand[:2], terms.demand[:2])
    return whole.keeping(fraction)


def split(members: Sequence[GroupMember], have: Vector) -> list[Vector]:
    """What each member gets of `have`, within its own upper bounds; further entries are split equally."""
    demands = [one.demand for one in members]
    parts = [[0] * len(have) for _ in demands]
    for dimension, amount in enumerate(have):
        wanted = [demand[dimension] if dimension < len(demand) else 0 for demand in demands]
        total = sum(wanted)
        given = [each if total <= amount else each * amount // total for each in wanted]
        rest = amount - sum(given)
        for index in range(len(demands)):
            equal = rest // len(demands) if total <= amount else 0
            parts[index][dimension] = given[index] + equal
    for one, part in zip(members, parts, strict=True):
        for dimension, most in enumerate((one.job.cpu_millis_max, one.job.memory_bytes_max)):
            part[dimension] = part[dimension] if most is None else min(part[dimension], most)
    return [tuple(part) for part in parts]


@dataclass(frozen=True, slots=True)
class CoLocationGroup:
    """Members of one GPU, the highest in the queue first; or one member whose place is taken from it."""

    job: Job
    """How the planner sees it."""
    members: tuple[Job, ...]
    on: Mapping[str, tuple[GroupMember, ...]]
    """The members by GPU type."""
    stays: bool = False
    """Its members run together as they are (fill mode): their shares are never split anew but in proportion."""
    by_fractions: bool = False
    """`Candidate.by_fractions`."""

    def allocations(self, given: Allocation, pool: Pool) -> list[Allocation]:
        """What each member gets of what the group was given."""
        if len(self.members) == 1:
            return [replace(given, job=self.members[0].name)]
        (whole,) = given.workers
        have = held_in(whole, pool.further)
        parts = self._as_held(have, pool) if self.stays else split(self.on[pool.gpu_type], have)
        found = []
        names = sorted(job.name for job in self.members)
        for index, (job, part) in enumerate(zip(self.members, parts, strict=True)):
            partners = tuple(name for name in names if name != job.name)
            speeds = self._speeds(index, part, pool)
            one = Allocation(
                job=job.name,
                gpu_type=pool.gpu_type,
                workers=(node_share(whole.node, 1, part, pool.further),),
                steps_per_s=speeds[0],
                proportional_steps_per_s=speeds[1],
                shares_gpu_with=partners[0] if len(partners) == 1 else partners,
                delta_by_fractions=self._by_fractions(job),
            )
            found.append(job.running if job.running is not None and one == job.running else one)
        return found

    def _by_fractions(self, job: Job) -> bool:
        if self.stays and job.running is not None:
            return job.running.delta_by_fractions
        return self.by_fractions

    def _speeds(self, index: int, part: Vector, pool: Pool) -> tuple[float, float]:
        running = self.members[index].running
        if self.stays and running is not None:
            return running.steps_per_s, running.proportional_steps_per_s
        one = self.on[pool.gpu_type][index]
        return one.steps_per_s(part), one.usual

    def _as_held(self, have: Vector, pool: Pool) -> list[Vector]:
        held = [held_in(job.running.workers[0], pool.further) for job in self.members if job.running is not None]
        sums = [sum(amounts) for amounts in zip(*held, strict=True)]
        return [
            tuple(
                amount if all_ <= now else amount * now // all_
                for amount, all_, now in zip(one, sums, have, strict=True)
            )
            for one in held
        ]


def replace_running(job: Job, running: Allocation | None) -> Job:
    """The job, holding something else."""
    return job if job.running is running else replace(job, running=running)


def alone_again(job: Job) -> CoLocationGroup:
    """A job that must leave its place: planned as if it waited."""
    waits = replace(job, running=None)
    return CoLocationGroup(replace(waits, name=_name((job,))), (waits,), {})


def running_group(members: Sequence[Job]) -> CoLocationGroup:
    """Jobs that have one GPU and keep it."""
    return CoLocationGroup(_group_job(members, {}, (), _together(members), None), tuple(members), {}, stays=True)


def new_group(
    members: Sequence[Job],
    on: Mapping[str, tuple[GroupMember, ...]],
    nodes: Sequence[Node],
    pools: Mapping[str, Pool],
    *,
    by_fractions: bool = False,
) -> CoLocationGroup:
    """Jobs that will share one GPU of one of the types in `on`, on one of the nodes.

    Those that run must be on one GPU, which the group keeps. The group never gets less than the least share of a GPU of
    its nodes' pools, within its members' upper bounds.
    """
    running = [job for job in members if job.running is not None]
    least = smaller(*(pools[gpu_type].least_share for gpu_type in on))
    profiles = {gpu_type: matrix for gpu_type, one in on.items() if (matrix := _matrix(one)) is not None}
    everywhere = all({node.name for node in pools[gpu_type].nodes} <= {node.name for node in nodes} for gpu_type in on)
    job = _group_job(members, profiles, tuple(sorted(on)), _together(running), None if everywhere else nodes)
    job = replace(
        job,
        cpu_millis_min=max(job.cpu_millis_min, _at_most(least[0], job.cpu_millis_max)),
        memory_bytes_min=max(job.memory_bytes_min, _at_most(least[1], job.memory_bytes_max)),
    )
    return CoLocationGroup(job, tuple(members), on, by_fractions=by_fractions)


def _at_most(amount: int, bound: int | None) -> int:
    return amount if bound is None else min(amount, bound)


def _group_job(
    members: Sequence[Job],
    profiles: Mapping[str, Profile],
    gpu_types: tuple[str, ...],
    running: Allocation | None,
    nodes: Sequence[Node] | None,
) -> Job:
    first = members[0]
    name = _name(members)
    started = [job.run_started_s for job in members if job.running is not None and job.run_started_s is not None]
    return Job(
        name=name,
        gpus=1,
        arrival_s=min(job.arrival_s for job in members),
        weight=sum(job.weight for job in members),
        tenant=first.tenant,
        gpu_types=gpu_types,
        profiles=profiles,
        skew=first.skew,
        preemptible=all(job.preemptible for job in members),
        run_started_s=max(started, default=None),
        cpu_millis_min=sum(job.cpu_millis_min for job in members),
        memory_bytes_min=sum(job.memory_bytes_min for job in members),
        cpu_millis_max=_sum_of([job.cpu_millis_max for job in members]),
        memory_bytes_max=_sum_of([job.memory_bytes_max for job in members]),
        running=None if running is None else replace(running, job=name),
        quotas=merged_draws(draw for job in members for draw in job.quotas),
        nodes=None if nodes is None else tuple(sorted(node.name for node in nodes)),
    )


def _name(members: Sequence[Job]) -> str:
    """A name that no job has: a job and its group must differ."""
    return "\0".join(["", *(job.name for job in members)])


def _sum_of(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return sum(known) if len(known) == len(bounds) else None


def _together(running: Sequence[Job]) -> Allocation | None:
    """What jobs on one GPU hold together."""
    held = [job.running for job in running if job.running is not None]
    if not held:
        return None
    shares = [one.workers[0] for one in held]
    names = {name for share in shares for name in share.further}
    whole = NodeShare(
        node=shares[0].node,
        gpus=1,
        cpu_millis=sum(share.cpu_millis for share in shares),
        memory_bytes=sum(share.memory_bytes for share in shares),
        further={name: sum(share.further.get(name, 0) for share in shares) for name in sorted(names)},
    )
    return Allocation(job=held[0].job, gpu_type=held[0].gpu_type, workers=(whole,))


def _matrix(members: Sequence[GroupMember]) -> Profile | None:
    """How much is done in all for CPU and memory of the group; None where no member has a matrix."""
    if all(one.speed is None for one in members):
        return None
    cpu, memory = (_axis([[*_points(one, d), one.demand[d]] for one in members]) for d in (0, 1))

    def done(cpu_millis: int, memory_bytes: int) -> float:
        parts = split(members, (cpu_millis, memory_bytes))
        return sum(one.kept(part) for one, part in zip(members, parts, strict=True))

    table = tuple(tuple(done(c, m) for m in memory) for c in cpu)
    return Profile(cpu_millis=cpu, memory_bytes=memory, steps_per_s=table)


def _points(one: GroupMember, dimension: int) -> list[int]:
    if one.speed is None:
        return []
    return sorted({point[dimension] for point in one.speed.points()})


def _axis(points: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Sums of one point of each member, evenly thinned out; the last is where all have what they want."""
    thinned = [_thin(sorted({max(1, point) for point in one})) for one in points]
    return tuple(_thin(sorted({sum(one) for one in product(*thinned)})))


def _thin(values: list[int]) -> list[int]:
    if len(values) <= _POINTS:
        return values
    step = (len(values) - 1) / (_POINTS - 1)
    return [values[round(index * step)] for index in range(_POINTS)]
