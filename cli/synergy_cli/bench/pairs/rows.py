"""The pairs of one plan, and the same pairs one by one."""

import random
import time
from dataclasses import dataclass

import numpy as np

from synergy_core.cache import Memory
from synergy_core.collector import collector_paused
from synergy_core.colocation.combinations import Combinations
from synergy_core.colocation.grouping import Grouping
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.selection.scheduling_queue import JobIndex

_SAMPLE = 400
"""Pairs on each GPU type."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Of the allocation matrix; see `Combinations.rows`."""

    pairs: Ints
    throughputs: Floats
    seconds: float
    """Of a processor."""


def rows(snapshot: Snapshot, config: PlanConfig, memory: Memory) -> Rows:
    """The rows of all pairs that help, as a plan with this memory makes them, and what they take of its time."""
    grouping = _grouping(snapshot, config, memory)
    types = [pool.gpu_type for pool in memory.pools]
    index = JobIndex(snapshot.jobs, memory)
    speeds = [index.speeds(job) for job in snapshot.jobs]
    alone = np.array([[each.get(gpu_type, 0.0) for gpu_type in types] for each in speeds])
    workers = np.array([float(pool.open_gpus[0]) for pool in memory.pools])
    with collector_paused():
        began = time.process_time()
        pairs, throughputs = Combinations(grouping, memory.pairs).rows(snapshot.jobs, types, alone, workers)
        seconds = time.process_time() - began
    return Rows(pairs, throughputs, seconds)


def one_by_one_s(snapshot: Snapshot, config: PlanConfig, *, seed: int) -> float:
    """Processor seconds of working out each pair by itself, from a sample of them.

    It is the least that this takes: predictors are corrected and the jobs' matrices are read before, and pairs that
    help are not looked for.
    """
    memory = Memory()
    grouping = _grouping(snapshot, config, memory)
    types = [pool.gpu_type for pool in memory.pools]
    sample = _sample(len(snapshot.jobs), seed)
    for gpu_type in types:
        grouping.rules.predictor(gpu_type)
        for place in {place for two in sample for place in two}:
            grouping.member(snapshot.jobs[place], gpu_type)
    with collector_paused():
        began = time.process_time()
        for gpu_type in types:
            for one, other in sample:
                grouping.together((snapshot.jobs[one], snapshot.jobs[other]), gpu_type)
        seconds = time.process_time() - began
    return seconds * _number_of_pairs(len(snapshot.jobs)) / len(sample)


def _grouping(snapshot: Snapshot, config: PlanConfig, memory: Memory) -> Grouping:
    memory.begin(snapshot.nodes, config.demand_tolerance)
    memory.speeds.begin(snapshot.jobs, memory.pools, config.estimate)
    return Grouping(snapshot, memory.pools, config, memory.speeds)


def _sample(jobs: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    found = set[tuple[int, int]]()
    while len(found) < min(_SAMPLE, _number_of_pairs(jobs)):
        one, other = sorted(rng.sample(range(jobs), 2))
        found.add((one, other))
    return sorted(found)


def _number_of_pairs(jobs: int) -> int:
    return jobs * (jobs - 1) // 2
