"""Jobs as members of groups of two on one GPU type, many at once: as `group.GroupMember` is one.

Arguments and answers are arrays of one shape, with the number of a job in each place (`who`); amounts are a pair of
them, CPU and memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synergy_core.colocation.group import GroupMember
from synergy_core.colocation.kinds.surfaces import Surface, Surfaces, surface
from synergy_core.model.arrays import Bools, Floats, Ints
from synergy_core.model.resources import Vector
from synergy_core.model.snapshot import Job, Profile

Amounts = tuple[Ints, Ints]
_ANY: Final = 1 << 60
"""No bound: more than any amount."""
_NO_MATRIX: Final = surface(Profile(cpu_millis=(1,), memory_bytes=(1,), steps_per_s=((0.0,),)), (1, 1))


@dataclass(frozen=True, slots=True, eq=False)
class MemberTerms:
    """What is the same of a job on a GPU type, whatever part of the GPU it keeps (`GroupMember`)."""

    best: float
    usual: float
    demand: Vector
    """CPU and memory that it needs without a matrix."""
    surface: Surface | None


def terms_of(member: GroupMember, gpu_type: str) -> MemberTerms:
    """Of a member that keeps any part."""
    known = None if member.speed is None else surface(member.job.profiles[gpu_type], member.most)
    return MemberTerms(member.best, member.usual, member.demand, known)


class Members:
    """Of K jobs, at least one."""

    def __init__(self, jobs: Sequence[Job], terms: Sequence[MemberTerms]) -> None:
        self._best = np.array([one.best for one in terms])
        self._usual = np.array([one.usual for one in terms])
        self._has_matrix: Bools = np.array([one.surface is not None for one in terms])
        self._surfaces = Surfaces([one.surface or _NO_MATRIX for one in terms])
        self._fixed = [np.array([one.demand[d] for one in terms], dtype=np.int64) for d in (0, 1)]
        lows = [(job.cpu_millis_min, job.memory_bytes_min) for job in jobs]
        highs = [(job.cpu_millis_max, job.memory_bytes_max) for job in jobs]
        self._low = [np.array([max(1, low[d]) for low in lows], dtype=np.int64) for d in (0, 1)]
        self._high = [np.array([min(high[d] or _ANY, _ANY) for high in highs], dtype=np.int64) for d in (0, 1)]

    def at_most(self, who: Ints, fraction: Floats) -> Floats:
        """What they keep with all the CPU and memory that they can use: never less than `kept`."""
        return self._relative(who, fraction, fraction * self._best[who])

    def demand(self, who: Ints, fraction: Floats) -> Amounts:
        """`GroupMember.demand` of these, which keep such fractions."""
        found = self._surfaces.smallest(who, fraction * self._best[who])
        with_matrix = self._has_matrix[who]
        cpu, memory = (
            np.where(with_matrix, np.maximum(found[d], self._low[d][who]), self._fixed[d][who]) for d in (0, 1)
        )
        return cpu, memory

    def parts(self, two: Ints, demand: Amounts, have: Vector) -> Amounts:
        """`group.split` for pairs (2 x P)."""
        cpu, memory = (np.minimum(_split(demand[d], have[d]), self._high[d][two]) for d in (0, 1))
        return cpu, memory

    def serves(self, who: Ints, parts: Amounts) -> Bools:
        """Whether each has the least that it asks for."""
        return np.asarray((parts[0] >= self._low[0][who]) & (parts[1] >= self._low[1][who]))

    def kept(self, who: Ints, fraction: Floats, parts: Amounts) -> Floats:
        """`GroupMember.kept`: what each keeps of its speed at the GPU-proportional share."""
        of_gpu = fraction * self._best[who]
        speed = np.where(self._has_matrix[who], np.minimum(self._surfaces.at(who, *parts), of_gpu), of_gpu)
        return self._relative(who, fraction, speed)

    def _relative(self, who: Ints, fraction: Floats, speed: Floats) -> Floats:
        usual = self._usual[who]
        known = usual > 0
        return np.where(known, speed / np.where(known, usual, 1.0), fraction)


def _split(demand: Ints, amount: int) -> Ints:
    """What the two of each pair (2 x P) get of an amount."""
    total = demand.sum(axis=0)
    enough = total <= amount
    equal: Ints = demand + np.maximum(0, amount - total) // 2
    if enough.all():
        return equal
    return np.where(enough, equal, _portion(demand, amount, np.maximum(1, total)))


def _portion(part: Ints, amount: int, total: Ints) -> Ints:
    """part * amount // total, also where the product has more than 64 bits.

    The quotient of floats is off by a few at the most. So what is left of the product beyond it is small, and its lower
    64 bits, which is what integers of that size keep, are all of it.
    """
    quotient = (part.astype(np.float64) * amount / total).astype(np.int64)
    left = part * np.int64(amount) - quotient * total
    return np.asarray(quotient + left // total)
