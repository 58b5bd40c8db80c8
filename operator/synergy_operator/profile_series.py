"""Where a job's profile stands apart from any run: skipped, provided, known from an identical job, to be measured."""

from collections.abc import Iterable
from dataclasses import dataclass

from synergy_api.profile import ProfileRequest, SensitivityMatrix
from synergy_api.reasons import Reason, say
from synergy_api.throughput_profile import ThroughputProfileSpec
from synergy_api.timestamps import format_time
from synergy_api.training_job import ProfileStatus, TrainingJobSpec
from synergy_operator.actions import PublishProfile
from synergy_operator.cluster import Cluster
from synergy_operator.conditions import Verdict, no, yes
from synergy_operator.fingerprint import fingerprint
from synergy_operator.observed import Observed
from synergy_operator.profile_curve import Points, job_demand
from synergy_operator.profile_size import ProfileSize, profile_size


@dataclass(frozen=True, slots=True)
class Standing:
    """The profile as it shall stand in the status, and what the condition Profiled says of it. None leaves the
    condition as it was."""

    profile: ProfileStatus
    verdict: Verdict | None

    @property
    def usable(self) -> bool:
        """The job can be queued for training."""
        return self.profile.state in ("Complete", "Skipped")


def standing(observed: Observed, spec: TrainingJobSpec) -> Standing:
    """The profile's standing while no profile run is open, or before a look at the open one. `spec` is valid."""
    mark = fingerprint(spec)
    old = observed.job.status.profile
    if spec.profile.mode == "Skip":
        return Standing(ProfileStatus(state="Skipped", fingerprint=mark), yes(say(Reason.PROFILE_SKIPPED)))
    if old is None or old.fingerprint != mark:
        old = ProfileStatus(state="Waiting", fingerprint=mark)
    if spec.profile.mode == "Provided":
        complete = old if old.state == "Complete" else completed(old, spec.profile.matrices, spec.gpus)
        return Standing(complete, yes(say(Reason.PROFILE_PROVIDED)))
    if old.state == "Complete":
        return finished_series(old)
    if old.state == "Failed":
        return Standing(old, None)
    return _to_measure(old, observed, spec)


def completed(profile: ProfileStatus, matrices: Iterable[SensitivityMatrix], gpus: int) -> ProfileStatus:
    """The profile with all its matrices, and the demand that follows from them."""
    ordered = sorted(matrices, key=lambda matrix: matrix.gpu_type)
    return profile.model_copy(
        update={
            "state": "Complete",
            "request": None,
            "matrices": ordered,
            "demand": [job_demand(matrix, gpus) for matrix in ordered],
        }
    )


def missing_types(profile: ProfileStatus, spec: TrainingJobSpec, cluster: Cluster) -> tuple[str, ...]:
    """Allowed GPU types without a matrix whose nodes take pods now, in order of name."""
    have = {matrix.gpu_type for matrix in profile.matrices}
    kinds = cluster.allowed_types(spec.gpu_types)
    return tuple(k for k in kinds if k not in have and any(node.schedulable for node in cluster.by_type[k]))


def size_on(gpu_type: str, spec: TrainingJobSpec, cluster: Cluster) -> ProfileSize:
    """The profile pod on a type of `missing_types`."""
    nodes = tuple(node for node in cluster.by_type[gpu_type] if node.schedulable)
    return profile_size(spec, nodes, cluster.profiling)


def publication(profile: ProfileStatus, spec: TrainingJobSpec, now: float) -> PublishProfile:
    """A measured profile for identical jobs to use."""
    container = spec.template["spec"]["containers"][0]
    times = [point.measured_at for point in profile.points if point.measured_at]
    published = ThroughputProfileSpec(
        fingerprint=profile.fingerprint,
        image=container["image"],
        command=[*container["command"], *(container.get("args") or [])],
        batch_size=spec.batch_size,
        gpus=spec.gpus,
        points=profile.points,
        matrices=profile.matrices,
        measured_at=max(times, default=format_time(now)),
    )
    return PublishProfile(profile.fingerprint, published.to_wire())


def finished_series(profile: ProfileStatus) -> Standing:
    """The standing of a profile that is complete, measured by the job itself or by an identical one."""
    if not profile.points:
        return Standing(profile, yes(say(Reason.PROFILE_KNOWN, name=profile.fingerprint)))
    kinds = ", ".join(sorted({point.gpu_type for point in profile.points}))
    return Standing(profile, yes(say(Reason.PROFILE_MEASURED, points=len(profile.points), gpu_types=kinds)))


def _to_measure(old: ProfileStatus, observed: Observed, spec: TrainingJobSpec) -> Standing:
    cluster = observed.cluster
    profile = _with_known(old, observed.profiles.get(old.fingerprint))
    missing = missing_types(profile, spec, cluster)
    if missing:
        return asking(profile, missing[0], spec, cluster)
    if profile.matrices:
        return finished_series(completed(profile, profile.matrices, spec.gpus))
    wanted = ", ".join(cluster.allowed_types(spec.gpu_types))
    waiting = profile.model_copy(update={"state": "Waiting", "request": None})
    return Standing(waiting, no(say(Reason.NO_NODE_TO_PROFILE, wanted=wanted)))


def asking(profile: ProfileStatus, gpu_type: str, spec: TrainingJobSpec, cluster: Cluster) -> Standing:
    """The standing of a profile that waits for a place on `gpu_type`."""
    size = size_on(gpu_type, spec, cluster)
    request = ProfileRequest(
        gpu_type=gpu_type, gpus=size.gpus, cpu_millis=size.ceiling_millis, memory_bytes=size.memory_bytes
    )
    points = len(points_on(profile, gpu_type))
    finding = say(Reason.PROFILE_WAITING, gpus=size.gpus, gpu_type=gpu_type, points=points)
    return Standing(profile.model_copy(update={"state": "Waiting", "request": request}), no(finding))


def points_on(profile: ProfileStatus, gpu_type: str) -> Points:
    """The points measured on one GPU type."""
    return tuple(point for point in profile.points if point.gpu_type == gpu_type)


def _with_known(profile: ProfileStatus, known: ThroughputProfileSpec | None) -> ProfileStatus:
    """The profile with the matrices that an identical job has measured for other types."""
    have = {matrix.gpu_type for matrix in profile.matrices}
    new = [matrix for matrix in known.matrices if matrix.gpu_type not in have] if known else []
    return profile.model_copy(update={"matrices": [*profile.matrices, *new]}) if new else profile
