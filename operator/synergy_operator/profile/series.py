"""The state of a job's profile between runs: skipped, provided, known from an identical job, or to be measured."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from synergy_api.parts.profile import ProfileRequest, SensitivityMatrix
from synergy_api.parts.usage import MeasuredUsage
from synergy_api.quantity import byte_count
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.scheduling_policy import Profiling
from synergy_api.resources.throughput_profile import ThroughputProfileSpec
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model.reasons import gpus_in_words
from synergy_operator.actions import PublishProfile
from synergy_operator.conditions import ConditionUpdate, no, yes
from synergy_operator.profile.curve import job_demand
from synergy_operator.profile.deduplication import candidates_before
from synergy_operator.profile.fingerprint import fingerprint
from synergy_operator.profile.image_change import outdated, with_seen_digest
from synergy_operator.profile.known_profiles import best_known, profile_name
from synergy_operator.profile.pairs.harvest import with_pairs
from synergy_operator.profile.pairs.references import next_pair
from synergy_operator.profile.points import TOO_UNCERTAIN, Points, is_cpu_point
from synergy_operator.profile.size import ProfileSize, profile_size
from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.observed import Observed
from synergy_operator.views.profile_candidate import ProfileCandidate


@dataclass(frozen=True, slots=True)
class ProfileState:
    """The profile as the status shows it, and the condition Profiled. None leaves the condition as it was.

    `deferred` is true while an identical job is measured instead.
    """

    profile: ProfileStatus
    profiled: ConditionUpdate | None
    deferred: bool = False

    @property
    def usable(self) -> bool:
        """The job can be queued for training."""
        return self.profile.state in ("Complete", "Skipped")


def profile_state(observed: Observed, spec: TrainingJobSpec, now: float) -> ProfileState:
    """The profile's state while no profile run is open, or before the open one is followed. `spec` is valid, `now` Unix
    time."""
    spec_hash = fingerprint(spec)
    old = observed.job.status.profile
    if spec.profile.mode == "Skip":
        return ProfileState(ProfileStatus(state="Skipped", fingerprint=spec_hash), yes(say(Reason.PROFILE_SKIPPED)))
    if old is None or old.fingerprint != spec_hash:
        old = ProfileStatus(state="Waiting", fingerprint=spec_hash)
    if spec.profile.mode == "Provided":
        complete = old if old.state == "Complete" else _provided(old, observed, spec)
        return ProfileState(complete, yes(say(Reason.PROFILE_PROVIDED)))
    old = with_seen_digest(observed, spec, old)
    if outdated(old) is not None:
        old = ProfileStatus(state="Waiting", fingerprint=spec_hash, image_digest=old.running_digest)
    if old.state == "Complete":
        return finished_series(old, spec)
    if old.state == "Failed":
        return ProfileState(old, None)
    return _to_measure(old, observed, spec, now)


def _provided(old: ProfileStatus, observed: Observed, spec: TrainingJobSpec) -> ProfileStatus:
    return completed(old, spec.profile.matrices, spec.gpus, observed.cluster.profiling.demand_tolerance_percent)


def completed(
    profile: ProfileStatus, matrices: Iterable[SensitivityMatrix], gpus: int, tolerance_percent: int
) -> ProfileStatus:
    """The profile with all of its matrices, and the demand that follows from them."""
    ordered = sorted(matrices, key=lambda matrix: matrix.gpu_type)
    return profile.model_copy(
        update={
            "state": "Complete",
            "request": None,
            "matrices": ordered,
            "demand": [job_demand(matrix, gpus, tolerance_percent) for matrix in ordered],
        }
    )


def missing_types(profile: ProfileStatus, spec: TrainingJobSpec, cluster: ClusterView) -> tuple[str, ...]:
    """Allowed GPU types without a matrix that have to be measured and whose nodes accept pods, sorted by name.

    If the policy limits the number of types, the job's fingerprint determines which ones are measured. Jobs are then
    measured on different types, and each can be a reference for the others.
    """
    have = {matrix.gpu_type for matrix in profile.matrices}
    kinds = cluster.allowed_types(spec.gpu_types)
    most = cluster.profiling.max_gpu_types
    missing = [k for k in kinds if k not in have and any(node.schedulable for node in cluster.by_type[k])]
    if most is None:
        return tuple(missing)
    first = int(profile.fingerprint[:8] or "0", 16) % max(1, len(kinds))
    in_turn = [k for k in (*kinds[first:], *kinds[:first]) if k in missing]
    return tuple(sorted(in_turn[: max(0, most - len(have.intersection(kinds)))]))


def types_to_measure(spec: TrainingJobSpec, cluster: ClusterView) -> int:
    """The number of GPU types that the job is measured on in all."""
    kinds, most = len(cluster.allowed_types(spec.gpu_types)), cluster.profiling.max_gpu_types
    return kinds if most is None else min(kinds, most)


def size_on(gpu_type: str, spec: TrainingJobSpec, cluster: ClusterView) -> ProfileSize:
    """The size of the profile pod on one of the `missing_types`."""
    nodes = tuple(node for node in cluster.by_type[gpu_type] if node.schedulable)
    return profile_size(spec, nodes, cluster.profiling)


def publication(observed: Observed, profile: ProfileStatus, spec: TrainingJobSpec, now: float) -> PublishProfile:
    """The action that publishes a measured profile for identical jobs, merged with what others have published."""
    container = spec.template["spec"]["containers"][0]
    name = profile_name(profile.fingerprint, profile.image_digest)
    old = next((known for known in observed.profiles.get(profile.fingerprint, ()) if known.name == name), None)
    mine = {point.gpu_type for point in profile.points}
    points = [*(p for p in (old.spec.points if old and old.spec else []) if p.gpu_type not in mine), *profile.points]
    times = [point.measured_at for point in points if point.measured_at]
    published = ThroughputProfileSpec(
        fingerprint=profile.fingerprint,
        image=container["image"],
        image_digest=profile.image_digest,
        command=[*container["command"], *(container.get("args") or [])],
        batch_size=spec.batch_size,
        gpus=spec.gpus,
        points=points,
        matrices=profile.matrices,
        confidence=profile.confidence,
        usage=profile.usage,
        traffic=profile.traffic or (old.spec.traffic if old and old.spec else None),
        pairs=[pair.model_copy(update={"reference": ""}) for pair in profile.pairs if pair.kept is not None],
        measured_at=max(times, default=format_time(now)),
    )
    return PublishProfile(name, published.to_wire(), old.version if old else "")


def finished_series(profile: ProfileStatus, spec: TrainingJobSpec) -> ProfileState:
    """The state of a complete profile, measured by the job itself or by an identical one."""
    unreliable = _unreliable(profile) or _understated(profile, spec)
    if unreliable is not None:
        return ProfileState(profile, yes(unreliable))
    if not profile.points:
        name = profile_name(profile.fingerprint, profile.image_digest)
        return ProfileState(profile, yes(say(Reason.PROFILE_KNOWN, name=name)))
    kinds = ", ".join(sorted({point.gpu_type for point in profile.points}))
    points = sum(is_cpu_point(point) for point in profile.points)
    facts: dict[str, Any] = {"points": points, "gpu_types": kinds}
    uncounted = _without_counters(profile) if spec.sharing.allowed else None
    if uncounted is not None:
        facts |= {"gpu_type": uncounted.gpu_type, "problem": uncounted.problem}
        return ProfileState(profile, yes(say(Reason.USAGE_WITHOUT_COUNTERS, **facts)))
    return ProfileState(profile, yes(say(Reason.PROFILE_MEASURED, **facts)))


def _unreliable(profile: ProfileStatus) -> Finding | None:
    """Why the speeds are not reliable; None if they are."""
    for known in profile.confidence:
        if known.uncertainty > TOO_UNCERTAIN:
            facts = {"gpu_type": known.gpu_type, "uncertainty": f"{known.uncertainty:.0%}"}
            return say(Reason.PROFILE_UNCERTAIN, runs=known.runs, **facts)
    for known in profile.confidence:
        if known.memory_error is not None and known.memory_error > TOO_UNCERTAIN:
            facts = {"gpu_type": known.gpu_type, "error": f"{known.memory_error:.0%}"}
            return say(Reason.PROFILE_MEMORY_OFF, **facts)
    if profile.unchecked:
        return say(Reason.PROFILE_MEMORY_UNCHECKED, gpu_type=", ".join(profile.unchecked))
    return None


def _understated(profile: ProfileStatus, spec: TrainingJobSpec) -> Finding | None:
    """The job used more GPU memory than its spec states: on a shared GPU it or its partners would fail. None
    otherwise."""
    measured = {usage.gpu_type: usage.memory_bytes for usage in profile.usage}
    for stated in spec.sharing.usage:
        took = measured.get(stated.gpu_type, 0)
        if took > byte_count(stated.memory):
            facts = {"gpu_type": stated.gpu_type, "told": stated.memory, "measured": f"{-(-took // (1 << 20))}Mi"}
            return say(Reason.USAGE_UNDERSTATED, **facts)
    return None


def _without_counters(profile: ProfileStatus) -> MeasuredUsage | None:
    """A usage that is utilisation although counters were asked for; None if there is none."""
    return next((usage for usage in profile.usage if usage.source == "Utilization" and usage.problem), None)


def _to_measure(old: ProfileStatus, observed: Observed, spec: TrainingJobSpec, now: float) -> ProfileState:
    cluster = observed.cluster
    known = best_known(observed.profiles.get(old.fingerprint, ()), old.image_digest)
    profile = _with_known(old, known)
    if known is not None and known.pairs and not profile.pairs:
        profile = with_pairs(profile, observed, spec, known.pairs)
    if missing_types(profile, spec, cluster):
        return next_series(profile, observed, spec)
    if profile.matrices:
        return after_matrices(profile, observed, spec, now)
    wanted = ", ".join(cluster.allowed_types(spec.gpu_types))
    waiting = profile.model_copy(update={"state": "Waiting", "request": None})
    return ProfileState(waiting, no(say(Reason.NO_NODE_TO_PROFILE, wanted=wanted)))


def next_series(profile: ProfileStatus, observed: Observed, spec: TrainingJobSpec) -> ProfileState:
    """The state of a profile with missing types.

    It requests GPUs of the first type that no identical job is going to measure. If there is none, it waits for that
    job.
    """
    missing = missing_types(profile, spec, observed.cluster)
    earlier = candidates_before(observed.job, observed.candidates.get(profile.fingerprint, {}))
    own = [kind for kind in missing if not any(other.measures(kind) for other in earlier)]
    if own:
        return with_request(profile, own[0], spec, observed.cluster)
    return _deferred(profile, observed, earlier[0])


def _deferred(profile: ProfileStatus, observed: Observed, earlier: ProfileCandidate) -> ProfileState:
    """The state of a profile that an identical job measures."""
    namespace, name = earlier.key
    waiting = profile.model_copy(update={"state": "Waiting", "request": None})
    shown = name if namespace == observed.job.namespace else "of another namespace"  # its jobs are private
    return ProfileState(waiting, no(say(Reason.PROFILE_SHARED, job=shown)), deferred=True)


def after_matrices(profile: ProfileStatus, observed: Observed, spec: TrainingJobSpec, now: float) -> ProfileState:
    """The state of a profile that has all of its matrices: complete, or waiting for a shared GPU to be measured beside
    a reference job on."""
    pair = next_pair(observed, spec, profile) if _may_wait(profile, observed, now) else None
    if pair is None:
        tolerance = observed.cluster.profiling.demand_tolerance_percent
        return finished_series(completed(profile, profile.matrices, spec.gpus, tolerance), spec)
    earlier = candidates_before(observed.job, observed.candidates.get(profile.fingerprint, {}))
    if earlier:
        return _deferred(profile, observed, earlier[0])
    whole = pair.whole
    request = ProfileRequest(gpu_type=pair.gpu_type, gpus=1, shared=True, **whole.fields)
    since = profile.pairs_wanted_at or format_time(now)
    update = {"state": "Waiting", "request": request, "pairs_wanted_at": since}
    pairs = sum(one.gpu_type == pair.gpu_type for one in profile.pairs)
    finding = say(Reason.PAIR_WAITING, gpu_type=pair.gpu_type, reference=pair.reference.name, pairs=pairs)
    return ProfileState(profile.model_copy(update=update), no(finding))


def pairs_seconds_left(profile: ProfileStatus, profiling: Profiling, now: float) -> float | None:
    """How long the job still waits for a shared GPU; None if it does not."""
    if profile.state != "Waiting" or profile.request is None or not profile.request.shared:
        return None
    since = parse_time(profile.pairs_wanted_at) if profile.pairs_wanted_at else now
    return max(0.0, since + profiling.reference_wait_seconds - now)


def _may_wait(profile: ProfileStatus, observed: Observed, now: float) -> bool:
    """The job has its shared GPU already, or has not waited for it for too long."""
    if open_allocation(observed.job.status) is not None or not profile.pairs_wanted_at:
        return True
    return now < parse_time(profile.pairs_wanted_at) + observed.cluster.profiling.reference_wait_seconds


def with_request(profile: ProfileStatus, gpu_type: str, spec: TrainingJobSpec, cluster: ClusterView) -> ProfileState:
    """The state of a profile that waits for GPUs of this type."""
    size = size_on(gpu_type, spec, cluster)
    request = ProfileRequest(
        gpu_type=gpu_type, gpus=size.gpus, cpu_millis=size.ceiling_millis, memory_bytes=size.memory_bytes
    )
    points = len(points_on(profile, gpu_type))
    finding = say(Reason.PROFILE_WAITING, gpus=gpus_in_words(size.gpus), gpu_type=gpu_type, points=points)
    return ProfileState(profile.model_copy(update={"state": "Waiting", "request": request}), no(finding))


def points_on(profile: ProfileStatus, gpu_type: str) -> Points:
    """The points measured on one GPU type."""
    return tuple(point for point in profile.points if point.gpu_type == gpu_type)


def _with_known(profile: ProfileStatus, known: ThroughputProfileSpec | None) -> ProfileStatus:
    """The profile with the matrices that identical jobs have measured for other types."""
    have = {matrix.gpu_type for matrix in profile.matrices}
    new = [matrix for matrix in known.matrices if matrix.gpu_type not in have] if known else []
    if known is None or not new:
        return profile
    digest = profile.image_digest or known.image_digest
    added = {matrix.gpu_type for matrix in new}
    confidence = [*profile.confidence, *(item for item in known.confidence if item.gpu_type in added)]
    usage = [*profile.usage, *(item for item in known.usage if item.gpu_type in added)]
    matrices = [*profile.matrices, *new]
    update = {"matrices": matrices, "confidence": confidence, "usage": usage, "image_digest": digest}
    return profile.model_copy(update={**update, "traffic": profile.traffic or known.traffic})
