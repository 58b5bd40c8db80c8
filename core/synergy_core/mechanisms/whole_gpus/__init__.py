"""A round in which only numbers of GPUs matter: a shorter way to the same plan.

With `proportional` shares on nodes that are alike, a job takes its GPUs and exactly their share of everything else. If
no job is bound to certain nodes either, a free GPU is as good as any other of its type. The walk along the queue then
counts GPUs (`walk`), and newcomers get their nodes by free GPUs (`places`). Jobs that stay are left as they are: no
entry, reservation or packing is made for them.

The general way (`selection.by_share`, `mechanisms.packing.packer`) finds the same plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synergy_core.mechanisms.whole_gpus.places import allocations
from synergy_core.mechanisms.whole_gpus.walk import walk
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation
from synergy_core.policies.queue import Ranking
from synergy_core.selection.scheduling_queue import JobIndex


@dataclass(frozen=True, slots=True)
class WholeGpus:
    """Which jobs run where."""

    allocations: Mapping[str, Allocation]
    """By job. A running job that goes on as it was has the object that it had."""
    losses: Mapping[str, str]
    """Running jobs that lost their places, in that order, and to which job. They may have found others."""


def whole_gpus(job_index: JobIndex, ranking: Ranking, pools: Sequence[Pool], config: PlanConfig) -> WholeGpus | None:
    """The jobs that run, where quotas, tenants, protection and shared GPUs limit none; None where more than numbers of
    GPUs matters."""
    if not _applies(config, ranking, pools):
        return None
    if not all(info.counts_gpus_only(pools) for info in job_index.running):
        return None
    chosen = walk(job_index, ranking, pools, config.mode)
    return None if chosen is None else WholeGpus(allocations(chosen, pools), chosen.losses)


def _applies(config: PlanConfig, ranking: Ranking, pools: Sequence[Pool]) -> bool:
    return (
        config.mechanism == "proportional"
        and not config.explain
        and not config.placement_sensitive
        and ranking.passes
        and not (ranking.first or ranking.leaves_idle or ranking.placements or ranking.nearness)
        and all(pool.is_uniform for pool in pools)
    )
