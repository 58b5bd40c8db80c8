"""What a job keeps of its speed by how near its nodes are: on a node, in a rack, in a block, across.

Gavel (section 3.1) has two such levels for each worker type, consolidated and not.

A tier is a set of places in which the job is equally fast. The first has the fewest nodes that could hold the job, in
the narrowest domain that could hold it so. Each further one lets the nodes be farther apart. Domains between which the
speed differs by less than packing is worth (`skew.WORTH_PACKING`) are in one tier.

The speed at a depth is known as it was measured there, or by the cost of all-reduce over the link of that level. Else
it is that of the next wider level that is known, else that of the next narrower one.
"""

from dataclasses import dataclass

import numpy as np

from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job
from synergy_core.throughput.all_reduce import spread_speed
from synergy_core.throughput.skew import WORTH_PACKING

_MOST_DIFFERENT = 1e6


@dataclass(frozen=True, slots=True)
class Tier:
    """Places in which a job is equally fast, beside those of the tiers before it."""

    depth: int
    """Its nodes share at least so many domains."""
    kept: float
    """Part of the speed in the first tier."""
    fewest_nodes: bool = False
    """It needs the fewest nodes that could hold the job, too."""

    def has(self, assignments: NodeAssignments, pool: Pool, fewest: int) -> bool:
        """Whether these nodes are in it, or in a tier before."""
        if self.fewest_nodes and len(assignments) > fewest:
            return False
        return pool.domains.depth_of(node for node, _ in assignments) >= self.depth


def tiers(job: Job, pool: Pool, steps_per_s: float, link_bytes_per_s: float | None) -> tuple[Tier, ...]:
    """The tiers of a job of several GPUs on a pool with domains, the nearest first; a single one where it is equally
    fast everywhere.

    `steps_per_s` is its speed at its share, 0 where that is not known; `link_bytes_per_s` the bandwidth of links whose
    level tells none.
    """
    room = np.array([node.gpus for node in pool.nodes], dtype=np.int64)
    fewest = pool.counts.fewest(job.gpus)
    nearest = pool.domains.holding(job.gpus, room, fewest)
    found = [Tier(nearest, 1.0, fewest_nodes=True)]
    for depth, kept in _by_depth(job, pool, nearest, _Ring(job, pool, steps_per_s, link_bytes_per_s, fewest)):
        last = found[-1]
        if WORTH_PACKING <= kept / last.kept <= 1.0 / WORTH_PACKING:
            found[-1] = Tier(depth, last.kept)
        else:
            found.append(Tier(depth, kept))
    return tuple(found)


def _by_depth(job: Job, pool: Pool, nearest: int, ring: "_Ring") -> list[tuple[int, float]]:
    """What the job keeps at each depth that is farther than the nearest, the narrowest first."""
    room = np.array([node.gpus for node in pool.nodes], dtype=np.int64)
    known: list[tuple[int, float | None]] = []
    for depth in (*pool.domains.depths, 0):
        nodes = pool.domains.most_nodes(depth, job.gpus, room) if depth < nearest else 0
        if nodes:
            told = _measured(job, pool.gpu_type, depth)
            known.append((depth, ring.kept(depth, nodes, nearest) if told is None else told))
        if pool.domains.is_whole(depth):
            break
    wider: float | None = None
    filled: list[tuple[int, float | None]] = []
    for depth, kept in reversed(known):
        wider = wider if kept is None else kept
        filled.append((depth, wider))
    narrower, found = 1.0, []
    for depth, kept in reversed(filled):
        narrower = narrower if kept is None else min(max(kept, 1.0 / _MOST_DIFFERENT), _MOST_DIFFERENT)
        found.append((depth, narrower))
    return found


def _measured(job: Job, gpu_type: str, depth: int) -> float | None:
    told = job.level_speeds.get(gpu_type, {}).get(str(depth))
    return job.spread_speeds.get(gpu_type, job.spread_speed) if told is None and depth == 0 else told


@dataclass(frozen=True, slots=True)
class _Ring:
    """All-reduce of a job on a pool."""

    job: Job
    pool: Pool
    steps_per_s: float
    link_bytes_per_s: float | None
    fewest: int
    """Nodes that could hold the job."""

    def kept(self, depth: int, nodes: int, nearest: int) -> float | None:
        """Part of the speed on the fewest nodes at the nearest depth; None where that is not known."""
        far = self._speed(depth, nodes)
        near = 1.0 if self.fewest == 1 else self._speed(nearest, self.fewest)
        return far / near if far is not None and near else None

    def _speed(self, depth: int, nodes: int) -> float | None:
        """As part of that on one node."""
        link = self.pool.domains.bytes_per_s(depth) or self.link_bytes_per_s
        if self.job.model_bytes is None or self.steps_per_s <= 0.0 or not link:
            return None
        return spread_speed(self.job.model_bytes, self.steps_per_s, link, nodes, self.job.overlap)
