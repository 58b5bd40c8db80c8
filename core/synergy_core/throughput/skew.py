"""Which jobs need consolidated placement (Tiresias, section 3.3).

A job whose model has one dominating tensor is slowed down by the network when its workers are spread over many nodes;
other jobs are not (section 2.2, figure 3, table 6). The skew of a job is the largest tensor's part of the model's
bytes. Above a threshold, PACKLIMIT, the job waits for the fewest nodes that could hold it. Below it, the job takes GPUs
that are left over, which keeps whole nodes free for jobs that need them.

Skew is a guess, made for parameter servers. Better knowledge replaces it:

* A job whose speeds on few and on many nodes were measured goes by these.
* Where the bandwidth of the nodes' links is known, a job whose model's bytes are known goes by the cost of all-reduce
  (`all_reduce`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Placement
from synergy_core.throughput.all_reduce import spread_speed

WORTH_PACKING = 0.95
"""A job that keeps this part of its speed when spread need not wait for few nodes."""
_MOST_DIFFERENT = 1e6
"""The most by which the speeds packed and spread may differ. More is no measurement, and too much for a solver."""


@dataclass(frozen=True, slots=True)
class PackRules:
    """What decides placement. Without a limit, `auto` stays what it is."""

    limit: float | None = None
    link_bytes_per_s: float | None = None

    @staticmethod
    def of(config: PlanConfig) -> "PackRules":
        """The rules of a plan."""
        return PackRules(config.pack_limit, config.link_bytes_per_s)


NO_RULES = PackRules()


def placement_of(job: Job, rules: PackRules, steps_per_s: Callable[[], float], nodes: Callable[[], int]) -> Placement:
    """How the job's GPUs are placed: as the job says; where it leaves that open, by its sensitivity.

    `steps_per_s` is its speed at its share, 0 where that is not known; `nodes` the most nodes that it could get.
    """
    if rules.limit is None or job.placement != "auto" or job.gpus == 1 or job.purpose == "profile":
        return job.placement
    known = min(job.spread_speeds.values(), default=None) if job.spread_speed is None else job.spread_speed
    if known is None and rules.link_bytes_per_s is not None and job.model_bytes is not None and steps_per_s() > 0.0:
        known = spread_speed(job.model_bytes, steps_per_s(), rules.link_bytes_per_s, nodes(), job.overlap)
    sensitive = job.skew > rules.limit if known is None else known < WORTH_PACKING
    return "pack" if sensitive else "spread"


def kept_when_spread(
    job: Job, gpu_type: str, link_bytes_per_s: float | None, steps_per_s: float, nodes: tuple[int, int]
) -> float:
    """The part of its speed on the fewest nodes that could hold the job which it has on the most; 1 if not known.

    As measured; else, where the link and the model's bytes are known, as all-reduce takes. `steps_per_s` is its speed
    at its share, 0 where that is not known, `nodes` the fewest and the most. A difference that packing is not worth
    (`WORTH_PACKING`), in either direction, is none.
    """
    known = job.spread_speeds.get(gpu_type, job.spread_speed)
    if known is None:
        if link_bytes_per_s is None or job.model_bytes is None or steps_per_s <= 0.0:
            return 1.0
        near, far = (
            spread_speed(job.model_bytes, steps_per_s, link_bytes_per_s, count, job.overlap) for count in nodes
        )
        known = far / near if near > 0.0 else 1.0
    known = min(max(known, 1.0 / _MOST_DIFFERENT), _MOST_DIFFERENT)
    return 1.0 if WORTH_PACKING <= known <= 1.0 / WORTH_PACKING else known
