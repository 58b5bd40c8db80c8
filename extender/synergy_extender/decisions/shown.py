"""What a decision shows people of each job: its queue, a deadline that it misses, estimates, restrictions."""

from collections.abc import Mapping

from synergy_api.parts.progress import SpeedEstimate
from synergy_api.parts.waiting import Late
from synergy_api.resources.training_job import FINISHED
from synergy_extender.cluster.run_state import RunState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.decisions.changes import Draft
from synergy_extender.decisions.plan_result import PlanResult
from synergy_extender.decisions.queue import queue_of

_DIGITS = 3
"""Of an estimate in the status: with more, each job that comes or goes would change those of all others."""
_MOST_ESTIMATES = 64
"""Of one job, that are told."""


def tell_queue(drafts: Mapping[Key, Draft], stands: Mapping[Key, RunState], result: PlanResult | None) -> None:
    """Write into waiting jobs why they wait. Without a new plan the old reasons stay."""
    told = None
    if result is not None:
        backing_off = [draft.job for key, draft in drafts.items() if stands[key] is RunState.BACKING_OFF]
        told = queue_of(result.plan, _without_place(drafts, stands), backing_off, result.refused)
    for key, draft in drafts.items():
        waits = stands[key] in (RunState.WAITING, RunState.BACKING_OFF) and draft.granted is None
        if not waits:
            draft.queue = None
        elif told is not None:
            draft.queue = told.get(key, draft.queue)


def _without_place(drafts: Mapping[Key, Draft], stands: Mapping[Key, RunState]) -> dict[Key, JobView]:
    """The jobs that have a position: those that wait, and those that leave and wait from then on. A plan may also leave
    out a run that this decision lets stay, and a job that has ended since: they are ahead of nobody."""
    return {
        key: draft.job for key, draft in drafts.items() if draft.granted is None and stands[key] is not RunState.IDLE
    }


def tell_late(drafts: Mapping[Key, Draft], stands: Mapping[Key, RunState], result: PlanResult | None) -> None:
    """Mark jobs that will miss their deadlines. Jobs that were not part of the plan keep what they have."""
    late = {item.job: item for item in result.plan.late} if result is not None else {}
    for key, draft in drafts.items():
        if draft.job.spec.slo is None or draft.job.status.phase in FINISHED:
            draft.late = None
        elif result is not None and stands[key] in (RunState.WAITING, RunState.HOLDING):
            found = late.get(str(key))
            draft.late = Late(reason=found.reason, message=found.message) if found is not None else None


def tell_estimates(drafts: Mapping[Key, Draft], stands: Mapping[Key, RunState], result: PlanResult | None) -> None:
    """Record which throughputs of a job are estimated: none for a suspended job or one that backs off. Other jobs that
    had no part in the plan keep theirs."""
    found: dict[str, list[SpeedEstimate]] = {}
    for one in result.plan.estimates if result is not None else ():
        speed = float(f"{one.steps_per_s:.{_DIGITS}g}")
        found.setdefault(one.job, []).append(SpeedEstimate(gpu_type=one.gpu_type, steps_per_second=speed))
    for key, draft in drafts.items():
        job, standing = draft.job, stands[key]
        if job.status.phase in FINISHED or job.spec.suspend or standing is RunState.BACKING_OFF:
            draft.estimates = None
        elif result is not None and standing in (RunState.WAITING, RunState.HOLDING):
            draft.estimates = found.get(str(key), [])[:_MOST_ESTIMATES] or None


def tell_restrictions(drafts: Mapping[Key, Draft], result: PlanResult | None) -> None:
    """Write into each job which part of its spec the plan did not follow because of its tenant."""
    for key, draft in drafts.items():
        if draft.job.status.phase in FINISHED:
            draft.restriction = None
        elif result is not None and key in result.entitled.by_job:
            draft.restriction = result.entitled.by_job[key].restriction
