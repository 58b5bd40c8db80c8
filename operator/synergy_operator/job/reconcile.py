"""The reconcile of one TrainingJob: from everything that is observed to the next actions.

It is pure and level-based. It depends on the current state, not on what happened, so events may be lost, duplicated or
out of order.
"""

from dataclasses import dataclass

from synergy_api.parts.service import RunOutcome, ServiceStatus
from synergy_api.parts.waiting import QueueStatus
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import FINISHED as FINISHED_PHASES
from synergy_api.resources.training_job import Phase, ProfileStatus, TrainingJobSpec, TrainingJobStatus
from synergy_api.timestamps import format_time
from synergy_operator.actions import Actions, DeleteTrainingJob
from synergy_operator.conditions import (
    FINISHED,
    ON_TIME,
    PROFILED,
    RESOURCES,
    RUNNING,
    SPEEDS,
    VALID,
    ConditionUpdate,
    find,
    no,
    write,
    yes,
)
from synergy_operator.job import oversize, ttl
from synergy_operator.job.array import reconcile_array
from synergy_operator.job.cleanup import deleted_job, leftovers
from synergy_operator.job.deadline import on_time, seconds_left, still_applies
from synergy_operator.job.dependencies import Dependencies, dependencies
from synergy_operator.job.estimated_speeds import speeds_measured
from synergy_operator.job.estimated_speeds import still_applies as estimates_still_apply
from synergy_operator.job.phases import phase_between_runs, phase_in_run
from synergy_operator.job.status_write import operator_part, shown_workers, status_actions, write_delay
from synergy_operator.job.suspension import with_suspension
from synergy_operator.job.validity.validation import accepted, validation_error
from synergy_operator.job.waiting import never_runs, told, waits_for_turn
from synergy_operator.profile import follow as profile_run
from synergy_operator.profile.fingerprint import fingerprint
from synergy_operator.profile.image_change import outdated, with_seen_digest
from synergy_operator.profile.pairs import follow as pair_run
from synergy_operator.profile.series import ProfileState, pairs_seconds_left, profile_state
from synergy_operator.run import follow as training_run
from synergy_operator.run.allocation import open_allocation
from synergy_operator.run.managed.follow import owner_ended, unmanaged
from synergy_operator.run.step import RunStep, earliest, reason_of
from synergy_operator.views.observed import Observed


@dataclass(frozen=True, slots=True)
class _End:
    phase: Phase
    finding: Finding


@dataclass(frozen=True, slots=True)
class _Decision:
    """The content of the status, and the step of the run that belongs to it."""

    phase: Phase
    profile: ProfileStatus
    profiled: ConditionUpdate | None
    running: ConditionUpdate
    service: ServiceStatus
    step: RunStep | None = None
    end: _End | None = None
    problem: Finding | None = None
    met: tuple[str, ...] = ()
    """Jobs that it waits for no longer."""


def reconcile(observed: Observed, now: float) -> Actions:
    """The next actions for one job; `now` is Unix time."""
    job = observed.job
    if job.deleting:
        return deleted_job(observed, now)
    finished = job.status.phase in FINISHED_PHASES
    problem = None if finished else validation_error(job, observed.cluster) or unmanaged(observed)
    if job.too_large and (problem is None or oversize.holds_resources(observed, now)):
        return oversize.release(observed, now)
    if finished:
        return _after_the_end(observed, now)
    if job.spec is None:
        return _unreadable(observed, problem, now)
    if job.spec.array is not None:
        return reconcile_array(observed, job.spec, job.spec.array, problem, now)
    return _actions_of(observed, job.spec, _decide(observed, job.spec, problem, now), now)


def _decide(observed: Observed, spec: TrainingJobSpec, problem: Finding | None, now: float) -> _Decision:
    status = observed.job.status
    held = ProfileState(status.profile or ProfileStatus(state="Waiting"), None)
    state = profile_state(observed, spec, now) if problem is None else held
    allocation = open_allocation(status)
    service = status.service or ServiceStatus()
    before = dependencies(observed.job, observed.named_phases, observed.cycle)
    wanted = problem is None and not spec.suspend and before.waits is None and before.failed is None
    if allocation is None:
        return _between_runs(observed, spec, problem, state, service, before=before)
    if allocation.purpose == "Profile":
        if problem is None:
            measured = pair_run.follow(observed, spec, allocation, state, now, wanted=wanted)
        else:
            measured = profile_run.end_invalid(observed, spec, allocation, state, now)
        step, state = measured.run, ProfileState(measured.profile, measured.profiled)
    else:
        step = training_run.follow(observed, spec, allocation, now, wanted=wanted and state.usable)
        if step.stage != "Closed" and service.run == allocation.run:
            # a running run continues as planned, even if spec or image have changed since
            state = _kept_state(observed, spec, held)
    if step.stage == "Closed":
        return _between_runs(observed, spec, problem, state, step.service, before=before, step=step)
    phase = phase_in_run(step.stage, profiling=allocation.purpose == "Profile")
    return _Decision(
        phase, state.profile, state.profiled, step.running, step.service, step, problem=problem, met=before.met
    )


def _kept_state(observed: Observed, spec: TrainingJobSpec, held: ProfileState) -> ProfileState:
    if held.profile.fingerprint != fingerprint(spec):
        return held
    profile = with_seen_digest(observed, spec, held.profile)
    changed = outdated(profile)
    return ProfileState(profile, yes(changed) if changed is not None else None)


def _between_runs(
    observed: Observed,
    spec: TrainingJobSpec,
    problem: Finding | None,
    state: ProfileState,
    service: ServiceStatus,
    *,
    before: Dependencies,
    step: RunStep | None = None,
) -> _Decision:
    end = _owner_end(observed) or _end(spec, state.profile, service, before)
    if end is not None:
        running = no(say(Reason.FINISHED))
        return _Decision(end.phase, state.profile, state.profiled, running, service, step, end, problem, before.met)
    phase = phase_between_runs(
        valid=problem is None,
        suspended=spec.suspend,
        profile=state.profile,
        waits=before.waits is not None,
        deferred=state.deferred,
    )
    held = before.waits if problem is None and not spec.suspend else None
    running = no(held or _waiting(phase, service, observed.job.status.queue))
    return _Decision(phase, state.profile, state.profiled, running, service, step, None, problem, before.met)


def _owner_end(observed: Observed) -> _End | None:
    """The end of a job whose managed object has ended."""
    found = owner_ended(observed.owner)
    return None if found is None else _End(*found)


def _end(spec: TrainingJobSpec, profile: ProfileStatus, service: ServiceStatus, before: Dependencies) -> _End | None:
    if before.failed is not None:
        return _End("Failed", before.failed)
    last = service.last
    if last is not None and last.outcome == "Succeeded":
        early = f"; the script ended training early: {last.ended_early}" if last.ended_early is not None else ""
        return _End("Succeeded", say(Reason.JOB_SUCCEEDED, run=last.run, early=early))
    if profile.state == "Failed":
        return _End("Failed", say(Reason.PROFILE_FAILED))
    if last is not None and service.counted_failures > spec.backoff_limit:
        facts = {"failures": service.counted_failures, "limit": spec.backoff_limit, "problem": reason_of(last).message}
        return _End("Failed", say(Reason.BACKOFF_LIMIT_EXCEEDED, **facts))
    return None


def _waiting(phase: Phase, service: ServiceStatus, queue: QueueStatus | None) -> Finding:
    """Why no worker runs, if the job waits for no other: a plan that can never be, the failure of the last run, its
    place in the queue, or the current phase."""
    if phase in ("Suspended", "Pending"):
        return say(Reason.SUSPENDED if phase == "Suspended" else Reason.NOT_VALID)
    last = service.last
    wrong = reason_of(last) if last is not None and _went_wrong(last) else None
    found = never_runs(queue) or wrong or waits_for_turn(queue)
    return found or say(Reason.WAITING_FOR_PLAN if phase == "Queued" else Reason.WAITING_FOR_PROFILE)


def _accepted(observed: Observed, spec: TrainingJobSpec) -> Finding:
    return accepted(spec, observed.cluster, observed.job.status.restriction)


def _went_wrong(last: RunOutcome) -> bool:
    return last.outcome in ("Failed", "Evicted") or reason_of(last).reason is Reason.CHECKPOINT_NOT_WRITTEN


def _actions_of(observed: Observed, spec: TrainingJobSpec, decision: _Decision, now: float) -> Actions:
    job, step, end = observed.job, decision.step, decision.end
    still_open = step is not None and step.stage != "Closed"
    allocation = open_allocation(job.status)
    open_run = allocation.run if allocation is not None and still_open else None
    running, told_in = told(decision.running, find(job.status.conditions, RUNNING), observed.told_in)
    updates: dict[str, ConditionUpdate | None] = {
        VALID: no(decision.problem) if decision.problem is not None else yes(_accepted(observed, spec)),
        PROFILED: decision.profiled,
        SPEEDS: speeds_measured(job.status),
        RUNNING: running,
        ON_TIME: on_time(spec.slo, job.status, end.phase if end is not None else None, now),
        FINISHED: yes(end.finding) if end is not None else no(say(Reason.NOT_FINISHED)),
        **(step.updates if step is not None else {}),
    }
    old = [c for c in job.status.conditions if c.type != RESOURCES or RESOURCES in updates]
    old = [c for c in old if still_applies(c, spec.slo) and estimates_still_apply(c, job.status)]
    status = TrainingJobStatus(
        observed_generation=job.generation,
        phase=decision.phase,
        conditions=write(old, updates, job.generation, now),
        profile=decision.profile,
        workers=shown_workers(observed, decision.service, open_run),
        size_limits=step.size_limits if step is not None else None,
        service=with_suspension(decision.service, decision.phase, now),
        met_dependencies=list(decision.met),
        start_time=job.status.start_time or decision.service.running_since or (step.started if step else None),
        completion_time=format_time(now) if end is not None else None,
    )
    tidy, tidy_wait = leftovers(observed, decision.service, open_run, now)
    before = step.before if step is not None else ()
    after = step.after if step is not None else ()
    late = write_delay(job.status, status, observed, now)
    written = () if late is not None or (step is not None and step.unwritten) else status_actions(job.status, status)
    wait = earliest(
        step.requeue_after if step is not None else None,
        tidy_wait,
        late,
        told_in,
        seconds_left(spec.slo, now) if end is None else None,
        pairs_seconds_left(decision.profile, observed.cluster.profiling, now) if end is None else None,
    )
    return Actions((*before, *written, *after, *tidy), wait)


def _after_the_end(observed: Observed, now: float) -> Actions:
    """A finished job keeps its last pods, gives back an allocation that is still open, and is deleted after its time to
    live."""
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
    """A spec that does not parse, for example after a downgrade: report it and change nothing else."""
    job = observed.job
    updates: dict[str, ConditionUpdate | None] = {VALID: no(problem) if problem is not None else None}
    status = operator_part(job.status).model_copy(
        update={
            "observed_generation": job.generation,
            "phase": job.status.phase or "Pending",
            "conditions": write(job.status.conditions, updates, job.generation, now),
        }
    )
    return Actions(status_actions(job.status, status))
