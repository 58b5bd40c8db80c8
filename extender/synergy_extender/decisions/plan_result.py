"""A plan, and what it assumed of each job."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from synergy_api.reasons import Finding
from synergy_core.explain.preemptions import Preemption
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode
from synergy_extender.cluster.run_state import RunState, open_run, run_state
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.snapshot.entitlements import Entitlements


class Stance(NamedTuple):
    """What a plan assumed of a job. A decision holds only while the job is in this state."""

    standing: RunState
    run: int
    suspended: bool


def stance(job: JobView, now: float) -> Stance:
    """The present state of the job."""
    allocation = open_run(job)
    return Stance(run_state(job, now), allocation.run if allocation is not None else 0, job.spec.suspend)


class Stances(Mapping[Key, Stance]):
    """The states of all jobs at one moment, each worked out when somebody asks for it."""

    def __init__(self, jobs: Mapping[Key, JobView], now: float) -> None:
        self._jobs = jobs
        self._now = now

    def __getitem__(self, key: Key) -> Stance:
        return stance(self._jobs[key], self._now)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)


@dataclass(frozen=True)
class PlanResult:
    """A plan with what it was made from. `refused` are the jobs that could not be planned, with the reason."""

    plan: Plan
    mode: Mode
    stances: Mapping[Key, Stance]
    refused: Mapping[Key, Finding] = field(default_factory=dict)
    entitled: Entitlements = field(default_factory=Entitlements)
    left_out: Container[Key] = frozenset()
    """Jobs that had no part in the plan because nothing can be written of them: nothing is decided of them."""
    preemptions: Mapping[str, Preemption] = field(default_factory=dict)
    """For whom each run ends that the plan ends, and by which rule, by the planner's name of the job."""
