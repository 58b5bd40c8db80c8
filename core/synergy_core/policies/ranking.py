"""Asks the policy for the order of the jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from synergy_core.colocation.grouping import Grouping
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.model.tenant_tree import TenantTree
from synergy_core.policies import POLICIES
from synergy_core.policies.allocation.solutions import Solutions
from synergy_core.policies.classes import by_class
from synergy_core.policies.queue import Pairs, Queue, Ranking
from synergy_core.policies.rounds.time_shares import WITH_PAIRS
from synergy_core.throughput.levels import Tier


class JobSpeeds(Protocol):
    """Speeds of jobs at their GPU-proportional share, in steps per second; 0 where not known."""

    def best_speed(self, job: Job) -> float:
        """On the GPU type where the job is fastest."""
        ...

    def speeds(self, job: Job) -> Mapping[str, float]:
        """On each GPU type that could hold the job."""
        ...

    def speed_parts(self, job: Job) -> Mapping[str, tuple[float, float]]:
        """By GPU type, the fractions of that speed on the fewest nodes and spread."""
        ...

    def tiers(self, job: Job) -> Mapping[str, tuple[Tier, ...]]:
        """By GPU type with domains, the fractions of that speed by how near its nodes are."""
        ...


def rank(
    snapshot: Snapshot,
    config: PlanConfig,
    *,
    pools: Sequence[Pool],
    speeds: JobSpeeds,
    grouping: Grouping,
    pairs: Pairs | None,
    solutions: Solutions,
    tenants: TenantTree,
) -> Ranking:
    """Promoted jobs, profile runs by arrival, then the policy's order with classes above it."""
    queue = Queue(
        now=snapshot.now,
        jobs=snapshot.jobs,
        steps_per_s=speeds.best_speed,
        gpus=sum(node.gpus for node in snapshot.nodes),
        queues=config.queues,
        speeds=lambda job: _as_clients(job, speeds.speeds(job), grouping),
        gpus_of={pool.gpu_type: pool.open_gpus[0] for pool in pools},
        aware=config.aware,
        round_s=snapshot.round_s,
        prices=_prices(pools),
        speed_parts=speeds.speed_parts if config.placement_sensitive else lambda _: {},
        tiers=speeds.tiers if config.placement_sensitive else lambda _: {},
        tenants=snapshot.tenants,
        tree=tenants,
        solutions=solutions,
        pairs=pairs,
    )
    ranking = by_class(POLICIES[config.policy](queue), snapshot.jobs, across=config.priorities_across)
    if config.mode == "fill":  # no job moves, and free GPUs are better used than idle until the round ends
        ranking = replace(
            ranking, types=_idle(snapshot, ranking) if ranking.leaves_idle else {}, placements={}, nearness={}
        )
    profile_runs = [job for job in snapshot.jobs if job.purpose == "profile"]
    if not profile_runs:
        return ranking
    profile_runs.sort(key=lambda job: (job.arrival_s, job.name))
    first = dict.fromkeys([*ranking.first, *(job.name for job in profile_runs)])
    return replace(ranking, names=(*first, *(name for name in ranking.names if name not in first)))


def shares_by_matrix(config: PlanConfig) -> bool:
    """An allocation matrix decides which jobs share.

    Under `fifo` the order decides, unless the matrix is asked for: it would give jobs other GPUs and partners from
    round to round, and a user of `fifo` wants jobs to stay.
    """
    if config.colocation == "auto":
        return config.policy in WITH_PAIRS - {"fifo"}
    return config.colocation == "gavel"


def _as_clients(job: Job, speeds: Mapping[str, float], grouping: Grouping) -> Mapping[str, float]:
    """Speeds by GPU type where the job does not share, with the threads that it has then."""
    if not grouping.limits_threads:
        return speeds  # jobs of one class share one mapping, which policies read once
    return {gpu_type: speed * grouping.alone(job, gpu_type) for gpu_type, speed in speeds.items()}


def _prices(pools: Iterable[Pool]) -> dict[str, float]:
    """Price of a GPU for an hour on average over the nodes of its type; 0 where a node with GPUs has none."""
    found: dict[str, float] = {}
    for pool in pools:
        nodes = [node for node in pool.nodes if node.gpus > 0]
        known = all(node.price_per_hour > 0 for node in nodes)
        gpus = sum(node.gpus for node in nodes)
        found[pool.gpu_type] = sum(node.price_per_hour * node.gpus for node in nodes) / gpus if known and gpus else 0.0
    return found


def _idle(snapshot: Snapshot, ranking: Ranking) -> dict[str, tuple[str, ...]]:
    """Between rounds running jobs stay, and waiting jobs may have GPUs that the policy finds worth it."""
    running = {job.name for job in snapshot.jobs if job.running is not None}
    return {name: types for name, types in ranking.types.items() if name not in running}
