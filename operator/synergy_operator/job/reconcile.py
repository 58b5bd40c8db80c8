"""One TrainingJob, looked at once: from all there is to see to what is to be done next.

Pure and level-based: it asks what is, not what happened, so that events may be lost, doubled or out of order.
"""

from dataclasses import dataclass
from typing import Final

from synergy_api.reasons import ENTRIES, Finding, Place, Reason, say
from synergy_api.timestamps import format_time
from synergy_api.training_job import FINISHED as FINISHED_PHASES
from synergy_api.training_job import (
    Phase,
    ProfileStatus,
    QueueStatus,
    RunOutcome,
    ServiceStatus,
    TrainingJobSpec,
    TrainingJobStatus,
)
from synergy_operator.actions import Actions, DeleteTrainingJob
from synergy_operator.conditions import (
    FINISHED,
    ON_TIME,
    PROFILED,
    RESOURCES,
    RUNNING,
    SPEEDS,
    VALID,
    Verdict,
    no,
    write,
    yes,
)
from synergy_operator.job import oversize, ttl
from synergy_operator.job.cleanup import leftovers
from synergy_operator.job.deadline import on_time, seconds_left, still_said
from synergy_operator.job.estimated_speeds import speeds_measured
from synergy_operator.job.estimated_speeds import still_said as still_estimated
from synergy_operator.job.phases import phase_between_runs, phase_in_run
from synergy_operator.job.status_write import operator_part, shown_workers, status_actions, write_delay
from synergy_operator.job.suspension import with_suspension
from synergy_operator.job.validation import accepted, validation_error
from synergy_operator.profile import follow as profile_run
from synergy_operator.profile.fingerprint import fingerprint
from synergy_operator.profile.image_change import outdated, with_seen_digest
from synergy_operator.profile.series import ProfileState, profile_state
from synergy_operator.run import follow as training_run
from synergy_operator.run.allocation import open_allocation
from synergy_operator.run.step import RunStep, earliest, reason_of
from synergy_operator.views.observed import Observed

_NEVER: Final = frozenset(
    reason.value for reason, entry in ENTRIES.items() if {Place.QUEUE, Place.RUNNING} <= set(entry.places)
)
"""What the queue says of a job that no wait will help."""


@dataclass(frozen=True, slots=True)
class _End:
    phase: Phase
    finding: Finding


@dataclass(frozen=True, slots=True)
class _Next:
    """What the status shall be, and what is done before and after it is written."""

    phase: Phase
    profile: ProfileStatus
    profiled: Verdict | None
    running: Verdict
    service: ServiceStatus
    step: RunStep | None = None
    end: _End | None = None
    problem: Finding | None = None


def reconcile(observed: Observed, now: float) -> Actions:
    """What to do now for one job; `now` is Unix time."""
    job = observed.job
    if job.deleting:
        return Actions()
    if job.too_large:
        return oversize.release(observed)
    if job.status.phase in FINISHED_PHASES:
        return _after_the_end(observed, now)
    problem = validation_error(job, observed.cluster)
    if job.spec is None:
        return _unreadable(observed, problem, now)
    return _act(observed, job.spec, _decide(observed, job.spec, problem, now), now)


def _decide(observed: Observed, spec: TrainingJobSpec, problem: Finding | None, now: float) -> _Next:
    status = observed.job.status
    held = ProfileState(status.profile or ProfileStatus(state="Waiting"), None)
    state = profile_state(observed, spec) if problem is None else held
    allocation = open_allocation(status)
    service = status.service or ServiceStatus()
    wanted = problem is None and not spec.suspend
    if allocation is None:
        return _between_runs(spec, problem, state, service, queue=status.queue)
    if allocation.purpose == "Profile":
        if problem is None:
            measured = profile_run.follow(observed, spec, allocation, state, now, wanted=wanted)
        else:
            measured = profile_run.give_up(observed, spec, allocation, state, now)
        step, state = measured.run, ProfileState(measured.profile, measured.profiled)
    else:
        step = training_run.follow(observed, spec, allocation, now, wanted=wanted and state.usable)
        if step.stage != "Closed" and service.run == allocation.run:
            # what is running goes on as it was planned, whatever the spec or the image say by now
            state = _still_held(observed, spec, held)
    if step.stage == "Closed":
        return _between_runs(spec, problem, state, step.service, queue=status.queue, step=step)
    phase = phase_in_run(step.stage, profiling=allocation.purpose == "Profile")
    return _Next(phase, state.profile, state.verdict, step.running, step.service, step, problem=problem)


def _still_held(observed: Observed, spec: TrainingJobSpec, held: ProfileState) -> ProfileState:
    if held.profile.fingerprint != fingerprint(spec):
        return held
    profile = with_seen_digest(observed, spec, held.profile)
    changed = outdated(profile)
    return ProfileState(profile, yes(changed) if changed is not None else None)


def _between_runs(
    spec: TrainingJobSpec,
    problem: Finding | None,
    state: ProfileState,
    service: ServiceStatus,
    *,
    queue: QueueStatus | None,
    step: RunStep | None = None,
) -> _Next:
    end = _end(spec, state.profile, service)
    if end is not None:
        running = no(say(Reason.FINISHED))
        return _Next(end.phase, state.profile, state.verdict, running, service, step, end, problem)
    valid = problem is None
    phase = phase_between_runs(valid=valid, suspended=spec.suspend, profile=state.profile, deferred=state.deferred)
    running = no(_waiting(phase, service, queue))
    return _Next(phase, state.profile, state.verdict, running, service, step, None, problem)


def _end(spec: TrainingJobSpec, profile: ProfileStatus, service: ServiceStatus) -> _End | None:
    last = service.last
    if last is not None and last.outcome == "Succeeded":
        return _End("Succeeded", say(Reason.JOB_SUCCEEDED, run=last.run))
    if profile.state == "Failed":
        return _End("Failed", say(Reason.PROFILE_FAILED))
    if last is not None and service.counted_failures > spec.backoff_limit:
        facts = {"failures": service.counted_failures, "limit": spec.backoff_limit, "problem": reason_of(last).message}
        return _End("Failed", say(Reason.BACKOFF_LIMIT_EXCEEDED, **facts))
    return None


def _waiting(phase: Phase, service: ServiceStatus, queue: QueueStatus | None) -> Finding:
    """Why no worker runs: what the planner says can never be; after a run that went wrong, what went wrong."""
    if phase == "Suspended":
        return say(Reason.SUSPENDED)
    if phase != "Pending" and queue is not None and queue.reason in _NEVER:
        return Finding(Reason(queue.reason), queue.message)
    if service.last is not None and phase != "Pending" and _went_wrong(service.last):
        return reason_of(service.last)
    if phase == "Queued":
        return say(Reason.WAITING_FOR_PLAN)
    return say(Reason.WAITING_FOR_PROFILE if phase == "Profiling" else Reason.NOT_VALID)


def _accepted(observed: Observed, spec: TrainingJobSpec) -> Finding:
    return accepted(spec, observed.cluster, observed.job.status.restriction)


def _went_wrong(last: RunOutcome) -> bool:
    return last.outcome in ("Failed", "Evicted") or reason_of(last).reason is Reason.CHECKPOINT_NOT_WRITTEN


def _act(observed: Observed, spec: TrainingJobSpec, following: _Next, now: float) -> Actions:
    job, step, end = observed.job, following.step, following.end
    still_open = step is not None and step.stage != "Closed"
    allocation = open_allocation(job.status)
    open_run = allocation.run if allocation is not None and still_open else None
    verdicts: dict[str, Verdict | None] = {
        VALID: no(following.problem) if following.problem is not None else yes(_accepted(observed, spec)),
        PROFILED: following.profiled,
        SPEEDS: speeds_measured(job.status),
        RUNNING: following.running,
        ON_TIME: on_time(spec.slo, job.status, end.phase if end is not None else None, now),
        FINISHED: yes(end.finding) if end is not None else no(say(Reason.NOT_FINISHED)),
        **(step.verdicts if step is not None else {}),
    }
    old = [c for c in job.status.conditions if c.type != RESOURCES or RESOURCES in verdicts]
    old = [c for c in old if still_said(c, spec.slo) and still_estimated(c, job.status)]
    status = TrainingJobStatus(
        observed_generation=job.generation,
        phase=following.phase,
        conditions=write(old, verdicts, job.generation, now),
        profile=following.profile,
        workers=shown_workers(observed, following.service, open_run),
        size_limits=step.size_limits if step is not None else None,
        service=with_suspension(following.service, following.phase, now),
        start_time=job.status.start_time or following.service.running_since or (step.started if step else None),
        completion_time=format_time(now) if end is not None else None,
    )
    tidy, tidy_wait = leftovers(observed, following.service, open_run, now)
    before = step.before if step is not None else ()
    after = step.after if step is not None else ()
    late = write_delay(job.status, status, observed, now)
    written = () if late is not None or (step is not None and step.unwritten) else status_actions(job.status, status)
    wait = earliest(
        step.look_again_in if step is not None else None,
        tidy_wait,
        late,
        seconds_left(spec.slo, now) if end is None else None,
    )
    return Actions((*before, *written, *after, *tidy), wait)


def _after_the_end(observed: Observed, now: float) -> Actions:
    """A finished job keeps its last pods, gives back what the plan may still have given it, and goes when its time is
    over."""
    job = observed.job
    left = ttl.seconds_left(job, now)
    if left == 0.0:
        return Actions((DeleteTrainingJob(),))
    service = job.status.service or ServiceStatus()
    allocation = open_allocation(job.status)
    if allocation is not None:
        service = service.model_copy(update={"ended_run": allocation.run})
    status = operator_part(job.status).model_copy(
        update={"service": service, "workers": shown_workers(observed, service, None)}
    )
    tidy, wait = leftovers(observed, service, None, now)
    return Actions((*status_actions(job.status, status), *tidy), earliest(left, wait))


def _unreadable(observed: Observed, problem: Finding | None, now: float) -> Actions:
    """The spec does not parse, as after a downgrade: say so and touch nothing else."""
    job = observed.job
    verdicts: dict[str, Verdict | None] = {VALID: no(problem) if problem is not None else None}
    status = operator_part(job.status).model_copy(
        update={
            "observed_generation": job.generation,
            "phase": job.status.phase or "Pending",
            "conditions": write(job.status.conditions, verdicts, job.generation, now),
        }
    )
    return Actions(status_actions(job.status, status))
