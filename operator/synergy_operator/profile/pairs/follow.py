"""One step of a profile run that measures a job beside reference jobs: one pair of batch Jobs after another.

The pairs are in the status and in the pods of finished Jobs, as points are. A pair that fails is set aside with its
reason: the job can do without it, so nothing here fails the job.
"""

from dataclasses import replace

from synergy_api.devices import device_class
from synergy_api.parts.allocation import Allocation
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_operator.actions import CreateJob
from synergy_operator.conditions import ConditionUpdate, no
from synergy_operator.pods.gang import split_share
from synergy_operator.profile import follow as points
from synergy_operator.profile.failures import loss_of, stuck_start
from synergy_operator.profile.follow import ProfileStep
from synergy_operator.profile.open_series import OpenSeries
from synergy_operator.profile.pairs.harvest import PairRun, set_aside, with_pair_results
from synergy_operator.profile.pairs.job import pair_jobs
from synergy_operator.profile.pairs.references import NextPair, next_pair
from synergy_operator.profile.series import ProfileState, after_matrices, publication
from synergy_operator.run.step import recorded_outcome
from synergy_operator.views.observed import Observed


def follow(
    observed: Observed,
    spec: TrainingJobSpec,
    allocation: Allocation,
    profile_state: ProfileState,
    now: float,
    *,
    wanted: bool,
) -> ProfileStep:
    """The next step of the open profile run, of points or of pairs."""
    series = OpenSeries(observed, spec, allocation, profile_state, now, wanted)
    if not _is_of_pairs(series):
        return points.follow(observed, spec, allocation, profile_state, now, wanted=wanted)
    if profile_state.profile.state != "Complete" or profile_state.profile != observed.job.status.profile:
        series = _with(series, with_pair_results(profile_state.profile, _run(series), series.found))
    outcome = recorded_outcome(series.service, series.number)
    if outcome is not None:
        return points.take_down(series, outcome)
    if any(job.fingerprint != profile_state.profile.fingerprint for job in series.jobs):
        return points.end(series, "Yielded", say(Reason.SPEC_CHANGED, run=series.number))
    return _measure(series)


def _is_of_pairs(series: OpenSeries) -> bool:
    profile = series.observed.job.status.profile
    asked = profile is not None and profile.request is not None and profile.request.shared is True
    return asked or any(job.pair is not None for job in series.jobs)


def _measure(series: OpenSeries) -> ProfileStep:
    lost = loss_of(series)
    if lost is not None:
        return points.end(series, "Evicted", lost)
    stuck = stuck_start(series)
    if stuck is not None:
        return points.end(_set_aside(series, _current(series), stuck), "Evicted", stuck)
    if series.active or series.holding:
        return points.wait(series, _measuring(series, _current(series)[0]))
    return _continue(series)


def _continue(series: OpenSeries) -> ProfileStep:
    """The next pair, or the end of the run; no pod holds its GPU."""
    if series.profile_state.deferred and series.profile_state.profiled is not None:
        return points.end(series, "Yielded", series.profile_state.profiled.finding)
    if series.allocation.state != "Granted" or not series.wanted or series.share is None:
        return points.not_started(series)
    pair = next_pair(series.observed, series.spec, series.profile_state.profile, series.allocation.gpu_type)
    if pair is None or series.profile_state.profile.state == "Complete":
        return _complete(series)
    return _create(series, pair)


def _create(series: OpenSeries, pair: NextPair) -> ProfileStep:
    reference = (pair.reference.name, pair.model)
    refusals, share = series.observed.refusals, series.share
    if refusals.run == series.number:
        refused = say(refusals.reason, run=series.number, problem=refusals.message)
        return points.end(_set_aside(series, reference, refused), "Evicted", refused)
    if share is None or (share.devices or 1) < 2 or device_class(share.resource or "") is not None:
        unshared = say(Reason.PAIR_NEEDS_SHARED_GPU, run=series.number, node=share.node if share else "")
        return points.end(_set_aside(series, reference, unshared), "Evicted", unshared)
    if not series.allocation.admitted:
        return points.step(series, no(say(Reason.WAITING_FOR_ROOM, run=series.number)))
    (whole,) = split_share(share, None)
    profiling = series.observed.cluster.profiling
    jobs = pair_jobs(
        series.observed.job,
        series.spec,
        series.number,
        whole,
        pair,
        number=len(series.profile_state.profile.pairs),
        fingerprint=series.profile_state.profile.fingerprint,
        seconds=profiling.reference_pair_seconds,
        settings=series.observed.settings,
        most_grace_seconds=series.observed.cluster.max_checkpoint_seconds,
    )
    made = {job.name for job in series.observed.batch_jobs}
    if all(job["metadata"]["name"] in made for job in jobs):  # both have ended, as another pair, another run's, or none
        changed = say(Reason.PROFILE_JOB_CHANGED, run=series.number, job=jobs[0]["metadata"]["name"])
        return points.end(_set_aside(series, reference, changed), "Evicted", changed)
    accounting = series.service.model_copy(update={"run": series.number})
    actions = [CreateJob(series.number, job) for job in jobs]
    return points.step(series, _measuring(series, pair.reference.name), accounting, *actions)


def _complete(series: OpenSeries) -> ProfileStep:
    """The end of the pairs on this GPU type, and the profile's if no pair on another one is wanted."""
    profile = series.profile_state.profile
    if not any(pair.gpu_type == series.allocation.gpu_type for pair in profile.pairs):
        return points.end(series, "Profiled", points.done(series))
    published = publication(series.observed, profile, series.spec, series.now)
    rested = profile.model_copy(update={"pairs_wanted_at": None})
    after = after_matrices(rested, series.observed, series.spec, series.now)
    step = points.end(replace(series, profile_state=after), "Profiled", points.done(series))
    return replace(step, run=replace(step.run, before=(published,)))


def _current(series: OpenSeries) -> tuple[str, str]:
    """Name and model of the reference of the newest Jobs."""
    sides = [(job.created_at, job.name, job.pair) for job in series.jobs if job.pair is not None]
    newest = max(sides, key=lambda one: one[:2], default=None)
    return ("", "") if newest is None else (newest[2].reference, newest[2].model)


def _set_aside(series: OpenSeries, reference: tuple[str, str], why: Finding) -> OpenSeries:
    return _with(series, set_aside(series.profile_state.profile, _run(series), reference, why.message))


def _run(series: OpenSeries) -> PairRun:
    return PairRun(series.observed, series.spec, series.allocation.gpu_type, series.now)


def _with(series: OpenSeries, profile: ProfileStatus) -> OpenSeries:
    return replace(series, profile_state=replace(series.profile_state, profile=profile))


def _measuring(series: OpenSeries, reference: str) -> ConditionUpdate:
    facts = {"run": series.number, "reference": reference, "gpu_type": series.allocation.gpu_type}
    pairs = sum(pair.gpu_type == series.allocation.gpu_type for pair in series.profile_state.profile.pairs)
    return no(say(Reason.PAIR_MEASURING, pairs=pairs, **facts))
