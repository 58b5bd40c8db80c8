"""One step of an open profile run: one batch Job after another on the granted node, each for one point.

The points are in the status and in the pods of finished Jobs. The next point follows from them alone, so a series
continues where it was after a restart of the operator or the loss of its GPUs.
"""

from dataclasses import dataclass, replace
from typing import Literal

from synergy_api.amounts import Amounts
from synergy_api.devices import device_class
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.service import RunOutcome, ServiceStatus
from synergy_api.quantity import format_cpu
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_api.timestamps import parse_time
from synergy_operator.actions import Action, CreateJob, DeleteJob
from synergy_operator.conditions import ConditionUpdate, no
from synergy_operator.pods.claim import claim
from synergy_operator.pods.gang import split_share
from synergy_operator.pods.share import too_small
from synergy_operator.pods.template import PodShare
from synergy_operator.profile.failures import POD_SECONDS, changed_job, failure_of, loss_of, stuck_start
from synergy_operator.profile.harvest import concluded, with_results
from synergy_operator.profile.image_change import of_newest_image
from synergy_operator.profile.job import profile_job
from synergy_operator.profile.open_series import OpenSeries
from synergy_operator.profile.series import (
    ProfileState,
    after_matrices,
    missing_types,
    next_series,
    points_on,
    publication,
    types_to_measure,
)
from synergy_operator.profile.size import ProfileSize
from synergy_operator.profile.target import next_target
from synergy_operator.run.end import close_run
from synergy_operator.run.follow import START_SECONDS
from synergy_operator.run.half_bound import BIND_SECONDS
from synergy_operator.run.start_blocker import cannot_start, start_blocker, warning_reads, warning_reads_of_job
from synergy_operator.run.step import RunStep, earliest, finding_of, reason_of, reason_text, recorded_outcome
from synergy_operator.run.take_down import pod_deletions
from synergy_operator.views.batch_job import BatchJobView, Target
from synergy_operator.views.observed import Observed

Ending = Literal["Yielded", "Failed", "Evicted", "Profiled"]


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """The run's step, the profile after it, and the condition Profiled. None leaves the condition as it was."""

    run: RunStep
    profile: ProfileStatus
    profiled: ConditionUpdate | None


def follow(
    observed: Observed,
    spec: TrainingJobSpec,
    allocation: Allocation,
    profile_state: ProfileState,
    now: float,
    *,
    wanted: bool,
) -> ProfileStep:
    """The next step of the open profile run.

    `profile_state` is the profile before it. `wanted` is false if the job must not be measured now, because it is
    suspended.
    """
    series = OpenSeries(observed, spec, allocation, profile_state, now, wanted)
    series = _with_new_points(series)
    outcome = recorded_outcome(series.service, series.number)
    if outcome is not None:
        return take_down(series, outcome)
    old, new = profile_state.profile.image_digest, series.profile_state.profile.image_digest
    if old and old != new:
        return end(series, "Yielded", say(Reason.IMAGE_CHANGED, old=old, new=new))
    if any(job.fingerprint != profile_state.profile.fingerprint for job in series.jobs):
        return end(series, "Yielded", say(Reason.SPEC_CHANGED, run=series.number))
    if profile_state.usable or allocation.gpu_type in {matrix.gpu_type for matrix in profile_state.profile.matrices}:
        return end(series, "Profiled", done(series))
    return _measure(series)


def end_invalid(
    observed: Observed, spec: TrainingJobSpec, allocation: Allocation, profile_state: ProfileState, now: float
) -> ProfileStep:
    """The next step towards the end of the profile run of a job that is no longer valid."""
    series = OpenSeries(observed, spec, allocation, profile_state, now, wanted=False)
    outcome = recorded_outcome(series.service, series.number)
    if outcome is not None:
        return take_down(series, outcome)
    return end(series, "Yielded", say(Reason.SPEC_CHANGED, run=series.number))


def _measure(series: OpenSeries) -> ProfileStep:
    ended = _forced_end(series)
    if ended is not None:
        return ended
    if series.active or series.holding:
        return wait(series, _waiting(series))
    size, share = series.size, series.share
    if series.profile_state.deferred and series.profile_state.profiled is not None:
        return end(series, "Yielded", series.profile_state.profiled.finding)
    if series.allocation.state != "Granted" or not series.wanted or size is None or share is None:
        return not_started(series)
    target = next_target(
        series.spec,
        size,
        tuple(series.profile_state.profile.points),
        series.observed.cluster.profiling,
        gpu_types=types_to_measure(series.spec, series.observed.cluster),
        check=size.gpu_type not in series.profile_state.profile.unchecked,
    )
    if target is None:
        return _complete(series, size)
    (whole,) = split_share(share, None)
    pod_share = replace(whole, amounts=Amounts(size.gpus, target.cpu_millis, size.memory_bytes))
    return _create(series, pod_share, target)


def _forced_end(series: OpenSeries) -> ProfileStep | None:
    """The end of the run before its series is complete: the profile failed, a Job was changed, or a pod could not start
    or was lost."""
    failure = failure_of(series)
    if failure is not None:
        return end(_failed(series, failure), "Failed", failure)
    failed = changed_job(series) or stuck_start(series)
    if failed is not None:
        return end(series, "Failed", failed)
    lost = loss_of(series)
    return end(series, "Evicted", lost) if lost is not None else None


def _create(series: OpenSeries, pod_share: PodShare, target: Target) -> ProfileStep:
    refusals = series.observed.refusals
    if refusals.run == series.number:
        outcome: Ending = "Failed" if refusals.invalid else "Evicted"
        return end(series, outcome, say(refusals.reason, run=series.number, problem=refusals.message))
    small = too_small(series.spec.template, pod_share.amounts)
    if small is not None:
        return end(_failed(series, small), "Failed", small)
    if not series.allocation.admitted:
        return step(series, no(say(Reason.WAITING_FOR_ROOM, run=series.number)))
    attempt = sum(job.target == target for job in series.jobs)
    job = profile_job(
        series.observed.job,
        series.spec,
        series.number,
        pod_share,
        target,
        attempt=attempt,
        settings=series.observed.settings,
        counted=_counted(series, target),
        most_grace_seconds=series.observed.cluster.max_checkpoint_seconds,
    )
    accounting = series.service.model_copy(update={"run": series.number})
    metadata = job["metadata"]
    if metadata["name"] in {made.name for made in series.observed.batch_jobs}:  # its label says another run
        return end(series, "Failed", say(Reason.PROFILE_JOB_CHANGED, run=series.number, job=metadata["name"]))
    own = claim(metadata["name"], metadata["labels"], pod_share) if device_class(pod_share.resource) else None
    create = CreateJob(series.number, job, own)
    return step(series, _measuring(series, pod_share.amounts.cpu_millis), accounting, create)


def _counted(series: OpenSeries, target: Target) -> bool:
    """The run reads GPU counters and what is sent: the first one with all CPU, where the GPU has the most to do."""
    return series.size is not None and target == Target(series.size.ceiling_millis)


def wait(series: OpenSeries, measuring: ConditionUpdate) -> ProfileStep:
    """A Job is under way, or its pod must end before the next Job starts. `measuring` says what is measured."""
    lease = series.allocation.lease_until
    until = parse_time(lease) if lease else series.now
    if series.allocation.state != "Granted" and series.now >= until:
        return end(series, "Yielded", say(Reason.LEASE_OVER, run=series.number))
    after: list[Action] = []
    waits = [until - series.now] if series.allocation.state != "Granted" else []
    for job in series.jobs:
        pod = series.pod_of(job)
        if pod is not None and not pod.terminal and series.is_read(job):
            after.append(DeleteJob(job.name, job.uid))  # sidecars keep the pod alive after the measurement
    reads = [warning_reads(pod, pod.created_at, series.observed, series.now) for pod in series.holding]
    for pod in series.holding:
        if not pod.node:
            waits.append(pod.created_at + BIND_SECONDS - series.now)
        elif cannot_start(pod, series.observed) is not None:
            waits.append(pod.created_at + START_SECONDS - series.now)
    for job in series.active:
        if series.pod_of(job) is None:
            waits.append(job.created_at + POD_SECONDS - series.now)
            reads.append(warning_reads_of_job(job, series.observed, series.now))
    after += [read for found, _ in reads for read in found]
    finding = _blocked(series) or measuring
    return step(series, finding, None, *after, requeue_after=earliest(*waits, *(wait for _, wait in reads)))


def not_started(series: OpenSeries) -> ProfileStep:
    """The end of a run that has no place to measure on."""
    finding = finding_of(series.allocation.reason) if series.allocation.state == "Revoked" else None
    if finding is not None and finding.reason is Reason.PODS_NOT_STARTED:
        return end(series, "Evicted", finding)
    return end(series, "Yielded", say(Reason.NOT_STARTED, run=series.number))


def _complete(series: OpenSeries, size: ProfileSize) -> ProfileStep:
    """The end of the series on this GPU type. The profile is complete too, unless other types have to be measured."""
    profile = concluded(series.profile_state.profile, series.spec, size)
    published = publication(series.observed, profile, series.spec, series.now)
    if missing_types(profile, series.spec, series.observed.cluster):
        after = next_series(profile, series.observed, series.spec)
    else:
        after = after_matrices(profile, series.observed, series.spec, series.now)
    step = end(replace(series, profile_state=after), "Profiled", done(series))
    return replace(step, run=replace(step.run, before=(published,)))


def _with_new_points(series: OpenSeries) -> OpenSeries:
    """The series with results of finished Jobs that the status does not have yet."""
    if series.size is None:
        return series
    ending = recorded_outcome(series.service, series.number) is not None
    profile = of_newest_image(series.profile_state.profile, series.spec, series.pods, ending=ending)
    profile = with_results(profile, series.spec, series.size, series.found, series.now)
    if profile == series.profile_state.profile:
        return series
    return replace(series, profile_state=replace(series.profile_state, profile=profile))


def end(series: OpenSeries, outcome: Ending, finding: Finding) -> ProfileStep:
    """The step that ends the run with this outcome."""
    return take_down(series, RunOutcome(run=series.number, outcome=outcome, reason=reason_text(finding)))


def take_down(series: OpenSeries, outcome: RunOutcome) -> ProfileStep:
    """The step that takes down what is left of a run with this outcome, and closes it then."""
    running = no(reason_of(outcome))
    profile, profiled = series.profile_state.profile, series.profile_state.profiled
    if not series.holding and not series.active:
        accounting = close_run(
            series.service, series.allocation, outcome, ended=series.now, gpus=series.spec.gpus, now=series.now
        )
        return ProfileStep(RunStep("Closed", accounting, running), profile, profiled)
    accounting = series.service.model_copy(update={"last": outcome})
    jobs = tuple(DeleteJob(job.name, job.uid) for job in series.jobs if _unfinished(series, job))
    pods, wait = pod_deletions(series.holding, series.observed, series.now)
    return ProfileStep(
        RunStep("Leaving", accounting, running, after=(*jobs, *pods), requeue_after=wait), profile, profiled
    )


def _unfinished(series: OpenSeries, job: BatchJobView) -> bool:
    """The Job still runs something. A Job whose pod has ended stays for its log."""
    pod = series.pod_of(job)
    return not job.finished and not job.deleting and (pod is None or not pod.terminal)


def _failed(series: OpenSeries, finding: Finding) -> OpenSeries:
    profile = series.profile_state.profile.model_copy(update={"state": "Failed", "request": None})
    return replace(series, profile_state=ProfileState(profile, no(finding)))


def step(
    series: OpenSeries,
    running: ConditionUpdate,
    accounting: ServiceStatus | None = None,
    *after: Action,
    requeue_after: float | None = None,
) -> ProfileStep:
    """A step of the open run, after which the profile is being measured."""
    profile = series.profile_state.profile.model_copy(update={"state": "Measuring"})
    step = RunStep("Starting", accounting or series.service, running, after=after, requeue_after=requeue_after)
    return ProfileStep(step, profile, running)


def _measuring(series: OpenSeries, point: int) -> ConditionUpdate:
    facts = {"run": series.number, "cpu": format_cpu(point), "gpu_type": series.allocation.gpu_type}
    points = len(points_on(series.profile_state.profile, series.allocation.gpu_type))
    return no(say(Reason.PROFILE_MEASURING, points=points, **facts))


def _waiting(series: OpenSeries) -> ConditionUpdate:
    points = [job.point for job in series.active]
    points += [pod.amounts.cpu_millis for pod in series.holding]
    return _measuring(series, points[0])


def _blocked(series: OpenSeries) -> ConditionUpdate | None:
    blockers = (start_blocker(pod, series.observed) for pod in series.holding)
    return next((no(blocker) for blocker in blockers if blocker is not None), None)


def done(series: OpenSeries) -> Finding:
    """The run has measured all that it should."""
    return say(Reason.SERIES_ENDED, run=series.number, gpu_type=series.allocation.gpu_type)
