"""One step of an open profile run: one batch Job after another on the granted node, each for one CPU point.

The points stand in the status and in the finished Jobs' pods; the next point follows from them alone, so that a series
goes on where it was after a crash of the operator or the loss of its place.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from synergy_api.allocation import Allocation, NodeShare
from synergy_api.quantity import format_bytes, format_cpu
from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import parse_time
from synergy_api.training_job import ProfileStatus, RunOutcome, ServiceStatus, TrainingJobSpec
from synergy_operator.actions import Action, CreateJob, DeleteJob
from synergy_operator.conditions import Verdict, no
from synergy_operator.gang import split
from synergy_operator.half_bound import BIND_SECONDS, hold_up
from synergy_operator.hindrance import cannot_start, hindrance, questions, questions_of_job, refused_pod
from synergy_operator.image_change import of_newest_image
from synergy_operator.observed import Observed
from synergy_operator.profile_harvest import concluded, harvested, result_of
from synergy_operator.profile_job import ATTEMPTS, profile_job
from synergy_operator.profile_result import Shortfall
from synergy_operator.profile_series import (
    Standing,
    completed,
    finished_series,
    missing_types,
    next_series,
    points_on,
    publication,
    types_to_measure,
)
from synergy_operator.profile_size import ProfileSize, profile_size
from synergy_operator.profile_target import next_target
from synergy_operator.run_end import close
from synergy_operator.run_step import RunStep, decided, finding_of, reason_of, reason_text, sooner
from synergy_operator.share import too_small
from synergy_operator.template import Place
from synergy_operator.training_run import START_SECONDS, deletions_of
from synergy_operator.views import BatchJobView, PodView, Target
from synergy_operator.worker_state import WorkerState, worker_state

POD_SECONDS: Final = 60.0
"""How long the pod of a profile Job may take to be made."""

Ending = Literal["Yielded", "Failed", "Evicted", "Profiled"]


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """The run's step with the profile after it, and what the condition Profiled says: None leaves it as it was."""

    run: RunStep
    profile: ProfileStatus
    profiled: Verdict | None


@dataclass(frozen=True)
class _Series:
    observed: Observed
    spec: TrainingJobSpec
    allocation: Allocation
    standing: Standing
    now: float
    wanted: bool

    @property
    def number(self) -> int:
        return self.allocation.run

    @cached_property
    def service(self) -> ServiceStatus:
        return self.observed.job.status.service or ServiceStatus()

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        return self.observed.pods_of(self.number)

    @cached_property
    def jobs(self) -> tuple[BatchJobView, ...]:
        return self.observed.batch_jobs_of(self.number)

    @cached_property
    def share(self) -> NodeShare | None:
        return self.allocation.workers[0] if self.allocation.workers else None

    @cached_property
    def size(self) -> ProfileSize | None:
        nodes = self.observed.cluster.by_type.get(self.allocation.gpu_type, ())
        if self.share is None or not nodes:
            return None
        return profile_size(self.spec, nodes, self.observed.cluster.profiling, self.share)

    def pod_of(self, job: BatchJobView) -> PodView | None:
        return next((pod for pod in self.pods if pod.batch_job == job.name), None)

    @property
    def found(self) -> tuple[tuple[BatchJobView, PodView | None], ...]:
        """The Jobs with their pods."""
        return tuple((job, self.pod_of(job)) for job in self.jobs)

    @cached_property
    def holding(self) -> tuple[PodView, ...]:
        return tuple(pod for pod in self.pods if not pod.terminal)

    @cached_property
    def active(self) -> tuple[BatchJobView, ...]:
        """Jobs that have or may still get a pod without a result."""
        return tuple(job for job in self.jobs if not job.finished and result_of(job, self.pod_of(job)) is None)


def follow(
    observed: Observed, spec: TrainingJobSpec, allocation: Allocation, standing: Standing, now: float, *, wanted: bool
) -> ProfileStep:
    """The next step of the open profile run; `standing` is the profile's before it. `wanted` is false when the job must
    not be measured now (suspended)."""
    series = _Series(observed, spec, allocation, standing, now, wanted)
    series = _with_new_points(series)
    outcome = decided(series.service, series.number)
    if outcome is not None:
        return _take_down(series, outcome)
    old, new = standing.profile.image_digest, series.standing.profile.image_digest
    if old and old != new:
        return _end(series, "Yielded", say(Reason.IMAGE_CHANGED, old=old, new=new))
    if any(job.fingerprint != standing.profile.fingerprint for job in series.jobs):
        return _end(series, "Yielded", say(Reason.SPEC_CHANGED, run=series.number))
    if standing.usable or allocation.gpu_type in {matrix.gpu_type for matrix in standing.profile.matrices}:
        return _end(series, "Profiled", _done(series))
    return _measure(series)


def give_up(
    observed: Observed, spec: TrainingJobSpec, allocation: Allocation, standing: Standing, now: float
) -> ProfileStep:
    """The open profile run of a job that is no longer valid: it ends at once."""
    series = _Series(observed, spec, allocation, standing, now, wanted=False)
    outcome = decided(series.service, series.number)
    if outcome is not None:
        return _take_down(series, outcome)
    return _end(series, "Yielded", say(Reason.SPEC_CHANGED, run=series.number))


def _measure(series: _Series) -> ProfileStep:
    ended = _forced_end(series)
    if ended is not None:
        return ended
    if series.active or series.holding:
        return _wait(series)
    size, share = series.size, series.share
    if series.standing.twin and series.standing.verdict is not None:
        return _end(series, "Yielded", series.standing.verdict.finding)
    if series.allocation.state != "Granted" or not series.wanted or size is None or share is None:
        return _not_started(series)
    target = next_target(
        series.spec,
        size,
        tuple(series.standing.profile.points),
        series.observed.cluster.profiling,
        gpu_types=types_to_measure(series.spec, series.observed.cluster),
        check=size.gpu_type not in series.standing.profile.unchecked,
    )
    if target is None:
        return _complete(series, size)
    (whole,) = split(share, None)
    place = replace(whole, gpus=size.gpus, cpu_millis=target.cpu_millis, memory_bytes=size.memory_bytes)
    return _create(series, place, target)


def _forced_end(series: _Series) -> ProfileStep | None:
    """What ends the run before its series is done: the profile has failed, or a pod could not start or was lost."""
    failure = _failure(series)
    if failure is not None:
        return _end(_failed(series, failure), "Failed", failure)
    stuck = _stuck(series)
    if stuck is not None:
        return _end(series, "Failed", stuck)
    lost = _lost(series)
    return _end(series, "Evicted", lost) if lost is not None else None


def _create(series: _Series, place: Place, target: Target) -> ProfileStep:
    refusals = series.observed.refusals
    if refusals.run == series.number:
        outcome: Ending = "Failed" if refusals.invalid else "Evicted"
        return _end(series, outcome, say(refusals.reason, run=series.number, problem=refusals.message))
    small = too_small(series.spec.template, place.amounts)
    if small is not None:
        return _end(_failed(series, small), "Failed", small)
    if not series.allocation.admitted:
        return _step(series, no(say(Reason.WAITING_FOR_ROOM, run=series.number)))
    attempt = sum(job.target == target for job in series.jobs)
    settings = series.observed.settings
    job = profile_job(
        series.observed.job, series.spec, series.number, place, target, attempt=attempt, settings=settings
    )
    books = series.service.model_copy(update={"run": series.number})
    return _step(series, _measuring(series, place.cpu_millis), books, CreateJob(series.number, job))


def _wait(series: _Series) -> ProfileStep:
    """A Job is under way, or its pod must go before the next."""
    lease = series.allocation.lease_until
    until = parse_time(lease) if lease else series.now
    if series.allocation.state != "Granted" and series.now >= until:
        return _end(series, "Yielded", say(Reason.LEASE_OVER, run=series.number))
    after: list[Action] = []
    waits = [until - series.now] if series.allocation.state != "Granted" else []
    for job in series.jobs:
        pod = series.pod_of(job)
        if pod is not None and not pod.terminal and result_of(job, pod) is not None:
            after.append(DeleteJob(job.name, job.uid))  # sidecars keep the pod although the measurement is over
    asking = [questions(pod, pod.created_at, series.observed, series.now) for pod in series.holding]
    for pod in series.holding:
        if not pod.node:
            waits.append(pod.created_at + BIND_SECONDS - series.now)
        elif cannot_start(pod, series.observed) is not None:
            waits.append(pod.created_at + START_SECONDS - series.now)
    for job in series.active:
        if series.pod_of(job) is None:
            waits.append(job.created_at + POD_SECONDS - series.now)
            asking.append(questions_of_job(job, series.observed, series.now))
    after += [question for asked, _ in asking for question in asked]
    finding = _waiting(series)
    return _step(series, finding, None, *after, look_again_in=sooner(*waits, *(wait for _, wait in asking)))


def _not_started(series: _Series) -> ProfileStep:
    told = finding_of(series.allocation.reason) if series.allocation.state == "Revoked" else None
    if told is not None and told.reason is Reason.PODS_NOT_STARTED:
        return _end(series, "Evicted", told)
    return _end(series, "Yielded", say(Reason.NOT_STARTED, run=series.number))


def _complete(series: _Series, size: ProfileSize) -> ProfileStep:
    """The series on this GPU type is done; so is the profile if no other type is to be measured."""
    profile = concluded(series.standing.profile, series.spec, size)
    published = publication(series.observed, profile, series.spec, series.now)
    if missing_types(profile, series.spec, series.observed.cluster):
        after = next_series(profile, series.observed, series.spec)
    else:
        tolerance = series.observed.cluster.profiling.demand_tolerance_percent
        after = finished_series(completed(profile, profile.matrices, series.spec.gpus, tolerance), series.spec)
    step = _end(replace(series, standing=after), "Profiled", _done(series))
    return replace(step, run=replace(step.run, before=(published,)))


def _with_new_points(series: _Series) -> _Series:
    """The series with what finished Jobs have measured and the status does not have yet."""
    if series.size is None:
        return series
    going = decided(series.service, series.number) is not None
    profile = of_newest_image(series.standing.profile, series.spec, series.pods, going=going)
    profile = harvested(profile, series.spec, series.size, series.found, series.now)
    if profile == series.standing.profile:
        return series
    return replace(series, standing=replace(series.standing, profile=profile))


def _failure(series: _Series) -> Finding | None:
    """Why the profile has failed: a point that came to nothing as often as it may be tried, or once where sidecars keep
    the pod, since the proof goes with it."""
    attempts: dict[Target, list[tuple[BatchJobView, Shortfall]]] = {}
    for job in series.jobs:
        result = result_of(job, series.pod_of(job))
        if isinstance(result, Shortfall) and job.target.hit_rate is None:
            attempts.setdefault(job.target, []).append((job, result))
    kept = {pod.batch_job for pod in series.holding}
    for target, shortfalls in sorted(attempts.items(), key=lambda item: (item[0].cpu_millis, item[0].repeat)):
        if len(shortfalls) >= ATTEMPTS or any(job.name in kept for job, _ in shortfalls):
            job, shortfall = shortfalls[-1]
            memory = format_bytes(series.share.memory_bytes) if series.share else "its limit"
            facts = {
                "job": job.name,
                "cpu": format_cpu(target.cpu_millis),
                "problem": shortfall.problem,
                "memory": memory,
            }
            return say(shortfall.reason, **facts)
    return None


def _lost(series: _Series) -> Finding | None:
    """Why the place is given back before the series is done."""
    number, now = series.number, series.now
    # their TTL takes those that have been read away in a long series
    read = {run.job for point in series.standing.profile.points for run in point.runs}
    for job in series.jobs:
        pod = series.pod_of(job)
        if job.name in read or result_of(job, pod) is not None:
            continue
        if pod is None and (job.finished or job.deleting):
            return say(Reason.WORKER_LOST, run=number, rank=0, problem=f"the pod of profile run {job.name} is gone")
        if pod is None and (words := refused_pod(job, series.observed)):
            return say(Reason.POD_REFUSED, run=number, problem=words)
        if pod is None and now >= job.created_at + POD_SECONDS:
            return say(Reason.PROFILE_POD_MISSING, run=number, job=job.name, seconds=int(POD_SECONDS))
        if pod is not None and not pod.node and now >= pod.created_at + BIND_SECONDS:
            return _not_bound(series, pod)
        if pod is not None and (problem := _pod_loss(pod)):
            return say(Reason.WORKER_LOST, run=number, rank=0, problem=problem)
    return None


def _not_bound(series: _Series, pod: PodView) -> Finding:
    why = hindrance(pod, series.observed)
    if why is not None and why.reason is Reason.VOLUME_NOT_MOUNTED:
        return why
    facts = {"rank": 0, "seconds": int(BIND_SECONDS), "problem": hold_up(pod)}
    return say(Reason.GANG_NOT_BOUND, run=series.number, **facts)


def _pod_loss(pod: PodView) -> str:
    if worker_state(pod) in (WorkerState.LOST, WorkerState.REFUSED):
        return pod.disruption or pod.message or pod.reason or f"pod {pod.name} was deleted"
    return ""


def _stuck(series: _Series) -> Finding | None:
    for pod in series.holding:
        why = cannot_start(pod, series.observed)
        if why is not None and series.now >= pod.created_at + START_SECONDS:
            return why
    return None


def _end(series: _Series, outcome: Ending, finding: Finding) -> ProfileStep:
    return _take_down(series, RunOutcome(run=series.number, outcome=outcome, reason=reason_text(finding)))


def _take_down(series: _Series, outcome: RunOutcome) -> ProfileStep:
    running = no(reason_of(outcome))
    profile, verdict = series.standing.profile, series.standing.verdict
    if not series.holding and not series.active:
        books = close(
            series.service, series.allocation, outcome, ended=series.now, gpus=series.spec.gpus, now=series.now
        )
        return ProfileStep(RunStep("Closed", books, running), profile, verdict)
    books = series.service.model_copy(update={"last": outcome})
    jobs = tuple(DeleteJob(job.name, job.uid) for job in series.jobs if _unfinished(series, job))
    pods, wait = deletions_of(series.holding, series.observed, series.now)
    return ProfileStep(RunStep("Leaving", books, running, after=(*jobs, *pods), look_again_in=wait), profile, verdict)


def _unfinished(series: _Series, job: BatchJobView) -> bool:
    """The Job still runs something. One whose pod has ended stays for its log, seen or not yet seen as finished."""
    pod = series.pod_of(job)
    return not job.finished and not job.deleting and (pod is None or not pod.terminal)


def _failed(series: _Series, finding: Finding) -> _Series:
    profile = series.standing.profile.model_copy(update={"state": "Failed", "request": None})
    return replace(series, standing=Standing(profile, no(finding)))


def _step(
    series: _Series,
    running: Verdict,
    books: ServiceStatus | None = None,
    *after: Action,
    look_again_in: float | None = None,
) -> ProfileStep:
    profile = series.standing.profile.model_copy(update={"state": "Measuring"})
    step = RunStep("Starting", books or series.service, running, after=after, look_again_in=look_again_in)
    return ProfileStep(step, profile, running)


def _measuring(series: _Series, point: int) -> Verdict:
    facts = {"run": series.number, "cpu": format_cpu(point), "gpu_type": series.allocation.gpu_type}
    points = len(points_on(series.standing.profile, series.allocation.gpu_type))
    return no(say(Reason.PROFILE_MEASURING, points=points, **facts))


def _waiting(series: _Series) -> Verdict:
    for pod in series.holding:
        waits = hindrance(pod, series.observed)
        if waits is not None:
            return no(waits)
    points = [job.point for job in series.active]
    points += [pod.cpu_millis + pod.beside_cpu_millis for pod in series.holding]
    return _measuring(series, points[0])


def _done(series: _Series) -> Finding:
    return say(Reason.SERIES_ENDED, run=series.number, gpu_type=series.allocation.gpu_type)
