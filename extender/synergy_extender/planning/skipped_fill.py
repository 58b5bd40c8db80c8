"""Fill plans that would repeat the previous one, because nothing changed since."""

from dataclasses import dataclass
from typing import Any, Final

from synergy_core.model import snapshot as core
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


class FillSignatures:
    """Of one snapshot after another. What is known of a job that is the same object is used again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[core.Job, tuple[Any, ...]]] = {}

    def of(self, built: BuiltSnapshot, policy: PolicyInForce) -> tuple[Any, ...]:
        """What a fill plan depends on beside the clock: with the same free room and the same jobs, no job can enter."""
        base = built.base
        before, self._known = self._known, {}
        jobs = []
        for job in base.jobs:
            known = before.get(job.name)
            if known is None or known[0] is not job:
                known = (job, _facts(job))
            self._known[job.name] = known
            jobs.append(known[1])
        told = [(key, one.restriction) for key, one in built.entitled.by_job.items() if one.restriction is not None]
        refused = tuple(sorted(built.refused))
        return base.nodes, base.node_groups, base.quotas, tuple(jobs), refused, tuple(told), policy.spec


def _facts(job: core.Job) -> tuple[Any, ...]:
    return (
        job.name, job.gpus, job.purpose, job.gpu_types, job.nodes, job.placement, job.running is None,
        job.priority, job.urgent, bounds_of(job), tuple(job.profiles), tuple(job.measured), job.quotas,
    )  # fmt: skip
