"""Results of finished profile Jobs, and the matrix that follows from them at the end of a series."""

from collections.abc import Iterable

from synergy_api.reasons import Reason
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_api.timestamps import format_time
from synergy_core.profiling.adaptive_cpu_search import complete_curve
from synergy_operator.profile.curve import cpu_points_of, job_matrix, memory_model, memory_of, speeds
from synergy_operator.profile.image_change import holds_for
from synergy_operator.profile.job import is_unchanged
from synergy_operator.profile.points import assessed, jobs_of, usage_of, with_run
from synergy_operator.profile.result import MeasuredPoint, MeasurementFailure, read_result
from synergy_operator.profile.size import ProfileSize
from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.pod import PodView
from synergy_operator.views.worker_state import WorkerState, worker_state


def result_of(job: BatchJobView, pod: PodView | None) -> MeasuredPoint | MeasurementFailure | None:
    """The result of the Job; None while it runs, and if its pod was lost."""
    if pod is not None and worker_state(pod) in (WorkerState.SUCCEEDED, WorkerState.FAILED, WorkerState.YIELDED):
        if pod.main.exit_code is None:
            return MeasurementFailure(
                Reason.PROFILE_BAD_COMMAND, pod.init_failure or pod.main.message or "it did not start"
            )
        return read_result(pod.main)
    if job.failed_reason == "DeadlineExceeded":
        return MeasurementFailure(Reason.PROFILE_TIMEOUT, "it did not end in time")
    return None


def with_results(
    profile: ProfileStatus,
    spec: TrainingJobSpec,
    size: ProfileSize,
    jobs: Iterable[tuple[BatchJobView, PodView | None]],
    now: float,
) -> ProfileStatus:
    """The profile with all results of these Jobs that it does not have yet.

    A failed check of the memory model is recorded and not repeated, for example where storage is too slow for the time
    of a run. The job can do without it.
    """
    points, unchecked, traffic = list(profile.points), list(profile.unchecked), profile.traffic
    read = jobs_of(points)
    for job, pod in jobs:
        if job.pair is not None or job.name in read or not is_unchanged(job):
            continue
        result = result_of(job, pod)
        if job.fingerprint != profile.fingerprint or (pod is not None and not holds_for(profile, spec, pod)):
            continue
        if (
            isinstance(result, MeasurementFailure)
            and job.target.hit_rate is not None
            and size.gpu_type not in unchecked
        ):
            unchecked.append(size.gpu_type)
        if isinstance(result, MeasuredPoint) and pod is not None:
            memory, traffic = pod.amounts.memory_bytes, result.traffic or traffic
            if job.target.hit_rate is not None:
                memory = memory_of(job.target.hit_rate, spec, size, tuple(points))
            points = with_run(
                points,
                size.gpu_type,
                job.target,
                result,
                memory_bytes=memory,
                client_thread_percent=size.client_thread_percent,
                job=job.name,
                measured_at=format_time(pod.main.finished_at if pod.main.finished_at is not None else now),
            )
    return profile.model_copy(update={"points": points, "unchecked": unchecked, "traffic": traffic})


def concluded(profile: ProfileStatus, spec: TrainingJobSpec, size: ProfileSize) -> ProfileStatus:
    """The profile with the matrix of a complete series, and the confidence in it."""
    grid, points = cpu_points_of(size), tuple(profile.points)
    curve = dict(zip(grid, complete_curve(grid, speeds(size, points)), strict=True))
    points, confidence = assessed(points, size, curve, memory_model(spec, size, points))
    usage = usage_of(points, size.gpu_type)
    return profile.model_copy(
        update={
            "points": list(points),
            "matrices": [*profile.matrices, job_matrix(spec, size, points)],
            "confidence": [*(c for c in profile.confidence if c.gpu_type != size.gpu_type), confidence],
            "usage": [*(u for u in profile.usage if u.gpu_type != size.gpu_type), *([usage] if usage else [])],
            "request": None,
        }
    )
