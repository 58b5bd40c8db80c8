"""Which jobs are to lie close together (Tiresias, section 3.3).

A job whose model has one tensor that outweighs the rest is slowed down by the network when its workers lie on many
nodes; others are not (section 2.2, figure 3, table 6). The skew of a job is its largest tensor's part of the model's
bytes. Above a threshold, PACKLIMIT, the job waits for the fewest nodes that could hold it. Below, it takes GPUs that
are left over, which keeps whole nodes free for those that need them.

That is a guess, made for parameter servers. A job whose speeds on few and on many nodes have been measured goes by
these instead, and where the bandwidth of the nodes' links is known, one whose model's bytes are known goes by what
all-reduce would take (`all_reduce`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from synergy_core.all_reduce import spread_speed
from synergy_core.model import Job, Placement, PlanConfig

WORTH_PACKING = 0.95
"""A job that keeps this part of its speed when spread need not wait for few nodes."""


@dataclass(frozen=True, slots=True)
class PackRules:
    """By what jobs are told apart; without a limit nothing is asked, and `auto` stays what it is."""

    limit: float | None = None
    link_bytes_per_s: float | None = None

    @staticmethod
    def of(config: PlanConfig) -> "PackRules":
        """Those of a plan."""
        return PackRules(config.pack_limit, config.link_bytes_per_s)


NO_RULES = PackRules()


def placement_of(job: Job, rules: PackRules, steps_per_s: Callable[[], float], nodes: Callable[[], int]) -> Placement:
    """How the job's GPUs are to lie: as it says itself; where it leaves that open, by what it is sensitive to.

    `steps_per_s` is its speed at its share, 0 where that is not known; `nodes` the most nodes it could land on.
    """
    if rules.limit is None or job.placement != "auto" or job.gpus == 1 or job.purpose == "profile":
        return job.placement
    known = job.spread_speed
    if known is None and rules.link_bytes_per_s is not None and job.model_bytes is not None and steps_per_s() > 0.0:
        known = spread_speed(job.model_bytes, steps_per_s(), rules.link_bytes_per_s, nodes())
    sensitive = job.skew > rules.limit if known is None else known < WORTH_PACKING
    return "pack" if sensitive else "spread"
