"""The measured points of a series: how results join them, and how precise they are."""

from collections.abc import Iterable
from dataclasses import asdict
from dataclasses import fields as fields_of
from typing import Any, Final, Literal

from synergy_api.parts.profile import ProfileConfidence, ProfilePoint, ProfileRun
from synergy_api.parts.usage import MeasuredUsage
from synergy_core.profiling.confidence import PointRun, estimates, run_to_run
from synergy_core.profiling.memory_check import model_error
from synergy_core.profiling.memory_model import MemoryModel, steps_per_s
from synergy_operator.profile.result import GpuUse, MeasuredPoint
from synergy_operator.profile.size import ProfileSize
from synergy_operator.views.batch_job import Target

Points = tuple[ProfilePoint, ...]

TOO_UNCERTAIN: Final = 0.25
"""From this uncertainty or memory error on, the profile says that it is not reliable."""
_HIGH, _FAIR = 0.05, 0.15
_MEANS: Final = ("gpu_compute", "gpu_bandwidth", "gpu_occupancy", "gpu_utilization", "gpu_memory_utilization")


def is_cpu_point(point: ProfilePoint) -> bool:
    """The point was measured with all data in memory."""
    return point.hit_rate is None


def same_point(point: ProfilePoint, gpu_type: str, target: Target) -> bool:
    """The target is one more run of the point."""
    wanted = (gpu_type, target.cpu_millis, target.hit_rate, target.storage_bytes_per_s)
    return (point.gpu_type, point.cpu_millis, point.hit_rate, point.storage_bytes_per_second) == wanted


def with_run(
    points: Iterable[ProfilePoint],
    gpu_type: str,
    target: Target,
    result: MeasuredPoint,
    *,
    memory_bytes: int,
    client_thread_percent: int,
    job: str,
    measured_at: str,
) -> list[ProfilePoint]:
    """The points with one more run. They stay unchanged if they contain that run already, or another in its place."""
    points = list(points)
    at = next((n for n, point in enumerate(points) if same_point(point, gpu_type, target)), len(points))
    old = points[at] if at < len(points) else None
    runs = list(old.runs) or [_only_run(old)] if old else []
    if target.repeat != len(runs) or target.cpu_millis < 1:
        return points
    speed, error = float(f"{result.steps_per_second:.6g}"), float(f"{result.relative_error:.3g}")
    runs.append(ProfileRun(steps_per_second=speed, relative_error=error, job=job))
    largest, model = result.tensors or ((old.largest_tensor_bytes, old.model_bytes) if old else (None, None))
    mean = sum(run.steps_per_second for run in runs) / len(runs)
    within = sum((run.relative_error * run.steps_per_second) ** 2 for run in runs) ** 0.5 / len(runs) / mean
    points[at : at + 1] = [
        ProfilePoint(
            gpu_type=gpu_type,
            cpu_millis=target.cpu_millis,
            memory_bytes=memory_bytes,
            steps_per_second=float(f"{mean:.6g}"),
            relative_error=float(f"{within:.3g}"),
            hit_rate=target.hit_rate,
            storage_bytes_per_second=target.storage_bytes_per_s,
            max_rss_bytes=max(result.max_rss_bytes, old.max_rss_bytes if old else 0),
            cached=result.cached,
            largest_tensor_bytes=largest,
            model_bytes=model,
            epoch_steps=result.epoch_steps or (old.epoch_steps if old else None),
            **_gpu_fields(old, len(runs) - 1, result.gpu),
            client_thread_percent=_least_threads(old, client_thread_percent),
            runs=runs,
            job=job,
            measured_at=measured_at,
        )
    ]
    return points


def _least_threads(old: ProfilePoint | None, percent: int) -> int | None:
    """The smallest limit on threads of all runs of a point; None if none of them had a limit."""
    least = min(percent, (old.client_thread_percent if old else None) or 100)
    return None if least == 100 else least


def jobs_of(points: Iterable[ProfilePoint]) -> set[str]:
    """The names of the Jobs whose runs the points contain."""
    return {run.job for point in points for run in point.runs}


def threads_of(points: Iterable[ProfilePoint], gpu_type: str) -> int | None:
    """The limit on threads (percent) behind the speeds on a GPU type; None if there was none.

    It is that of the fastest point, where the GPU limits the job. A series that lost its GPUs may have continued under
    another limit.
    """
    measured = [point for point in points if point.gpu_type == gpu_type and is_cpu_point(point)]
    fastest = max(measured, key=lambda point: (point.steps_per_second, point.cpu_millis), default=None)
    return fastest.client_thread_percent if fastest is not None else None


def _mean_with(old: float | None, runs: int, new: float | None) -> float | None:
    """The mean of `runs` runs and one more. Runs without a value do not count."""
    if old is None or new is None:
        return new if old is None else old
    return float(f"{(old * runs + new) / (runs + 1):.4g}")


def _gpu_fields(old: ProfilePoint | None, runs: int, new: GpuUse | None) -> dict[str, Any]:
    """What a point says of its GPUs after `runs` runs and one more.

    Figures of one source are averaged. Those by counters replace utilisation, and a run without counters changes
    nothing of them but the memory. A point without a source is of an older operator, which knew utilisation only.
    """
    if new is None or old is None or old.gpu_compute is None:
        return _kept(old) if new is None else _told(new)
    memory = max(new.memory_bytes, old.gpu_memory_bytes or 0)
    if (old.gpu_source or "Utilization") != new.source:
        fields = _kept(old) if new.source == "Utilization" else _told(new)
        return {**fields, "gpu_memory_bytes": memory}
    fields = _told(new)
    for name in _MEANS:
        fields[name] = _mean_with(getattr(old, name), runs, fields[name])
    return {**fields, "gpu_memory_bytes": memory}


def _told(new: GpuUse) -> dict[str, Any]:
    return {f"gpu_{name}": value for name, value in asdict(new).items()}


def _kept(old: ProfilePoint | None) -> dict[str, Any]:
    return (
        {} if old is None else {f"gpu_{field.name}": getattr(old, f"gpu_{field.name}") for field in fields_of(GpuUse)}
    )


def usage_of(points: Iterable[ProfilePoint], gpu_type: str) -> MeasuredUsage | None:
    """What the job uses of a GPU of this type when it is alone there; None if it was not sampled.

    Compute and bandwidth are those of the fastest point, where CPU limits the job the least, among the points with
    counters if there are any. Memory is the maximum.
    """
    known = [point for point in points if point.gpu_type == gpu_type and point.gpu_compute is not None]
    if not known:
        return None
    counted = [point for point in known if point.gpu_source not in (None, "Utilization")]
    fastest = max(counted or known, key=lambda point: (point.steps_per_second, point.cpu_millis))
    problems = [point.gpu_problem for point in known if point.gpu_problem]
    return MeasuredUsage(
        gpu_type=gpu_type,
        compute=fastest.gpu_compute or 0.0,
        bandwidth=fastest.gpu_bandwidth or 0.0,
        memory_bytes=max(point.gpu_memory_bytes or 0 for point in known),
        source=fastest.gpu_source or "Utilization",
        occupancy=fastest.gpu_occupancy,
        utilization=fastest.gpu_utilization,
        memory_utilization=fastest.gpu_memory_utilization,
        problem="" if counted or not problems else problems[-1],
    )


def _only_run(point: ProfilePoint) -> ProfileRun:
    """The single run of a point that an older operator measured."""
    return ProfileRun(steps_per_second=point.steps_per_second, relative_error=point.relative_error, job=point.job)


def cpu_runs(points: Iterable[ProfilePoint], gpu_type: str) -> dict[int, list[PointRun]]:
    """The runs of each CPU point on a GPU type."""
    return {
        point.cpu_millis: [PointRun(r.steps_per_second, r.relative_error) for r in point.runs or [_only_run(point)]]
        for point in points
        if point.gpu_type == gpu_type and is_cpu_point(point)
    }


def assessed(
    points: Points, size: ProfileSize, curve: dict[int, float], model: MemoryModel | None
) -> tuple[Points, ProfileConfidence]:
    """The points of a complete series with their intervals and predictions, and the confidence in the series.

    `curve` has the speed at each CPU point of the grid. Points outside the grid stay as they are.
    """
    runs = {cpu: found for cpu, found in cpu_runs(points, size.gpu_type).items() if cpu in curve}
    known = estimates(runs)
    spread = run_to_run(runs)
    assessed_points: list[ProfilePoint] = []
    pairs: list[tuple[float, float]] = []
    for point in points:
        update: dict[str, float] = {}
        if point.gpu_type == size.gpu_type and point.cpu_millis in curve:
            if is_cpu_point(point):
                update = {
                    "low_steps_per_second": _rounded(known[point.cpu_millis].low),
                    "high_steps_per_second": _rounded(known[point.cpu_millis].high),
                }
            elif model is not None and point.storage_bytes_per_second is not None:
                # the need of the processes may have grown since: the rate was measured, not the memory
                memory = model.process_bytes + round((point.hit_rate or 0.0) * model.dataset_bytes)
                predicted = steps_per_s(curve[point.cpu_millis], memory, model)
                update = {"predicted_steps_per_second": _rounded(predicted), "memory_bytes": max(1, memory)}
                pairs.append((predicted, point.steps_per_second))
        assessed_points.append(point.model_copy(update=update))
    uncertainty = max(estimate.uncertainty for estimate in known.values())
    error = model_error(pairs)
    confidence = ProfileConfidence(
        gpu_type=size.gpu_type,
        level=_level(max(uncertainty, error or 0.0)),
        uncertainty=_rounded(uncertainty),
        runs=sum(max(1, len(point.runs)) for point in points if point.gpu_type == size.gpu_type),
        run_to_run=None if spread is None else _rounded(spread),
        memory_error=None if error is None else _rounded(error),
        memory_points=len(pairs),
        storage_bytes_per_second=None if model is None else max(1, round(model.storage_bytes_per_s)),
    )
    return tuple(assessed_points), confidence


def _level(unreliable: float) -> Literal["High", "Fair", "Low"]:
    if unreliable <= _HIGH:
        return "High"
    return "Fair" if unreliable <= _FAIR else "Low"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
