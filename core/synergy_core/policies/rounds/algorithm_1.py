"""Gives the GPU types of one round to jobs (Gavel, section 5, Algorithm 1).

The shares of the allocation matrix X are served in the order that `turns` found. Each job gets its GPU type if enough
GPUs of it are left, and is passed over if not. Once a job has a type, its other shares are dropped.

Then jobs move up: a job moves to a faster type if X gives it time there too and enough of its GPUs would otherwise stay
idle. What it leaves is given to the next job. Policies that must not see how the types differ, and those that go by
cost, do not move jobs up.

With pairs in X, a job is given one of its combinations that are still possible, each as often as X says. The next
point of a sequence that fills the interval evenly (multiples of the golden ratio, with an offset for each job) selects
one from the sums of their shares. The partner gets the GPU too. A pair needs a GPU that both may share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from zlib import crc32

from synergy_core.model.answer import SharesFrom
from synergy_core.model.arrays import Ints
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.queue import Queue
from synergy_core.policies.rounds.entries import Entries, Ways
from synergy_core.policies.rounds.turns import GOLDEN


@dataclass(frozen=True, slots=True, eq=False)
class RoundShares:
    """The shares of an allocation matrix, in the order in which one round serves them."""

    problem: Problem
    entries: Entries
    order: Ints
    """Entries, as indices."""
    colliding: tuple[str, ...]
    """`Ranking.colliding`."""
    shares_from: SharesFrom

    def gpu_type(self, column: int) -> str:
        """The type of a column."""
        return self.problem.types[int(self.problem.column_type[column])]


def algorithm_1(
    found: RoundShares, jobs: Sequence[Job], free: Mapping[str, int], queue: Queue, *, fills: bool
) -> tuple[dict[int, int], tuple[tuple[str, tuple[str, ...]], ...]]:
    """The column of each job (index) that gets one, and the pairs that get one GPU (`Ranking.together`).

    `fills`: jobs move up to faster types with idle GPUs.
    """
    given = _Given(found, jobs, free, queue)
    given.serve()
    while fills and given.move_up():
        given.serve()
    return given.column, tuple(given.together)


class _Given:
    """What jobs are given in a round."""

    def __init__(self, found: RoundShares, jobs: Sequence[Job], free: Mapping[str, int], queue: Queue) -> None:
        self.column: dict[int, int] = {}
        """By job (index)."""
        self.together: list[tuple[str, tuple[str, ...]]] = []
        """Pairs that get one GPU (`Ranking.together`)."""
        self._found, self._jobs, self._queue = found, jobs, queue
        self._left, self._shared = dict(free), dict.fromkeys(free, 0)
        self._type_of = [found.gpu_type(column) for column in range(len(found.problem.columns))]
        self._paired: set[int] = set()

    def serve(self) -> None:
        """Give what is left to jobs that have nothing, in the order of the entries."""
        entries, left = self._found.entries, self._left
        job_of, column_of = entries.job.tolist(), entries.column.tolist()
        for entry in self._found.order.tolist():
            index, column = job_of[entry], column_of[entry]
            gpu_type = self._type_of[column]
            job = self._jobs[index]
            if index in self.column or job.gpus > left[gpu_type]:
                continue
            possible = [
                (other, share)
                for other, share in entries.ways(entry)
                if other < 0 or (other not in self.column and self._can_share((job, self._jobs[other]), gpu_type))
            ]
            if not possible:
                continue
            partner = _partner(job, possible, self._queue)
            self.column[index] = column
            left[gpu_type] -= job.gpus
            if partner >= 0:
                self.column[partner] = column
                self._shared[gpu_type] += 1
                self._paired |= {index, partner}
                self.together.append((gpu_type, (job.name, self._jobs[partner].name)))
            if not any(left.values()):
                break

    def move_up(self) -> bool:
        """Move jobs that run alone to faster types with idle GPUs that X gives them too; True if any moved."""
        entries, left, speed = self._found.entries, self._left, self._found.problem.throughputs
        if not any(left.values()):
            return False
        alone = self._found.order[entries.alone[self._found.order]]
        moved = False
        for index, column in zip(entries.job[alone].tolist(), entries.column[alone].tolist(), strict=True):
            now, gpus = self.column.get(index), self._jobs[index].gpus
            if now is None or index in self._paired or gpus > left[self._type_of[column]]:
                continue
            if self._type_of[now] != self._type_of[column] and speed[index, column] > speed[index, now]:
                left[self._type_of[now]] += gpus
                left[self._type_of[column]] -= gpus
                self.column[index] = column
                moved = True
        return moved

    def _can_share(self, two: tuple[Job, Job], gpu_type: str) -> bool:
        pairs = self._queue.pairs
        return pairs is not None and self._shared[gpu_type] < pairs.gpus(two, gpu_type)


def _partner(job: Job, possible: Ways, queue: Queue) -> int:
    """The partner of this round, or -1 for none: in the long run each as often as its share says."""
    if len(possible) == 1:
        return possible[0][0]
    begun = crc32(job.name.encode()) / 2**32
    point = (begun + GOLDEN * floor(queue.now / queue.round_s)) % 1.0 * sum(share for _, share in possible)
    for partner, share in possible:
        point -= share
        if point < 0.0:
            return partner
    return possible[-1][0]
