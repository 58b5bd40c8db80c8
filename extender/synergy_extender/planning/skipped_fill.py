"""Fill plans that would repeat the previous one, because nothing changed since."""

from dataclasses import dataclass
from typing import Any, Final

from synergy_extender.cluster.dimensions import bounds_of
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.snapshot.snapshot import BuiltSnapshot

_AGAIN_S: Final = 10.0
"""After how long free GPUs are planned again though nothing changed."""


@dataclass(frozen=True, slots=True)
class FillPlan:
    """What a fill plan depended on, and when it was made."""

    signature: tuple[Any, ...]
    at: float

    def is_repeated_by(self, signature: tuple[Any, ...], now: float) -> bool:
        """True if a fill plan would have the same result."""
        return signature == self.signature and now - self.at < _AGAIN_S


def fill_signature(built: BuiltSnapshot, policy: PolicyInForce) -> tuple[Any, ...]:
    """What a fill plan depends on beside the clock: with the same free room and the same jobs, no job can enter."""
    jobs = tuple(
        (job.name, job.gpus, job.purpose, job.gpu_types, job.nodes, job.placement, job.running is None,
         job.priority, job.urgent, bounds_of(job), tuple(job.profiles), tuple(job.measured), job.quotas)
        for job in built.snapshot.jobs
    )  # fmt: skip
    told = tuple((key, one.restriction) for key, one in built.entitled.by_job.items() if one.restriction is not None)
    groups = built.snapshot.node_groups
    return built.snapshot.nodes, groups, built.snapshot.quotas, jobs, tuple(sorted(built.refused)), told, policy.spec
