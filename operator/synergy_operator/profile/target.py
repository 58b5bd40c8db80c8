"""The next measurement of a series, from its measurements so far."""

from typing import Final

from synergy_api.resources.scheduling_policy import Profiling
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_core.profiling.adaptive_cpu_search import next_cpu_point
from synergy_core.profiling.confidence import next_repeat
from synergy_core.profiling.memory_check import check_point, thinned
from synergy_core.profiling.memory_model import MemoryModel, hit_rate, steps_per_s
from synergy_operator.profile.curve import cpu_points_of, has_data_set, memory_axis, memory_model, speeds
from synergy_operator.profile.points import Points, cpu_runs, is_cpu_point, same_point
from synergy_operator.profile.size import ProfileSize
from synergy_operator.views.batch_job import Target

_SWEPT_RATES: Final = (0.0, 0.3333, 0.6667)
"""Cached fractions at which a sweep measures each CPU point, in addition to all data in memory."""


def next_target(
    spec: TrainingJobSpec,
    size: ProfileSize,
    points: Points,
    profiling: Profiling,
    *,
    gpu_types: int = 1,
    check: bool = True,
) -> Target | None:
    """The next profile run; None if the series on this GPU type is complete.

    CPU points come first, then checks of the memory model, then repeats of noisy points. `gpu_types` is the number of
    types that the job is measured on. Without `check` the memory model is not checked.
    """
    swept = _swept_points(spec, size, profiling, gpu_types) if spec.profile.mode == "Sweep" else None
    measured = speeds(size, points)
    if swept is not None:
        cpu = next((point for point in reversed(swept) if point not in measured), None)
    else:
        cpu = next_cpu_point(
            cpu_points_of(size),
            measured,
            threshold=profiling.threshold_percent / 100,
            max_points=profiling.max_points,
        )
    if cpu is not None:
        return Target(cpu)
    own = tuple(point for point in points if point.gpu_type == size.gpu_type)
    wanted = check and (swept is not None or profiling.check_memory_model)
    if wanted and has_data_set(spec) and any(point.cached for point in own):
        memory = _next_memory(spec, size, own, swept)
        if memory is not None:
            return memory
    runs = {cpu: found for cpu, found in cpu_runs(points, size.gpu_type).items() if cpu in measured}
    again = next_repeat(
        runs,
        least_runs=profiling.runs_per_point,
        max_repeats=profiling.max_repeats,
        precision=profiling.precision_percent / 100,
    )
    return None if again is None else Target(again, repeat=len(runs[again]))


def _swept_points(spec: TrainingJobSpec, size: ProfileSize, profiling: Profiling, gpu_types: int) -> tuple[int, ...]:
    """The CPU points of a sweep, as many as its limit allows for the number of memory columns."""
    columns = 1 + len(_SWEPT_RATES) if has_data_set(spec) else 1
    return thinned(cpu_points_of(size), max(2, profiling.max_sweep_points // max(1, gpu_types) // columns))


def _next_memory(spec: TrainingJobSpec, size: ProfileSize, own: Points, swept: tuple[int, ...] | None) -> Target | None:
    """The next point that checks the memory model, or measures the bandwidth that the model needs."""
    if size.storage_bytes_per_s is None:
        cold = Target(size.ceiling_millis, 0.0)
        if not any(same_point(point, size.gpu_type, cold) for point in own):
            return cold
    model = memory_model(spec, size, own)
    if model is None:
        return None
    done = {(point.cpu_millis, point.hit_rate) for point in own if point.storage_bytes_per_second is not None}
    pace = max(1, round(model.storage_bytes_per_s))
    if swept is not None:
        todo = ((cpu, rate) for rate in reversed(_SWEPT_RATES) for cpu in reversed(swept))
        missing = next((pair for pair in todo if pair not in done), None)
        return None if missing is None else Target(*missing, pace)
    rate = None if done else _rate_to_check(size, own, model)
    return None if rate is None else Target(size.ceiling_millis, rate, pace)


def _rate_to_check(size: ProfileSize, own: Points, model: MemoryModel) -> float | None:
    """The cached fraction at which one run says most about the model.

    None if no run says anything: all data is always in memory, or storage of a measured bandwidth never slows the job.
    """
    full = next(p.steps_per_second for p in own if is_cpu_point(p) and p.cpu_millis == size.ceiling_millis)
    axis = memory_axis(size, model)
    memory = check_point(full, axis, model)
    if memory is None or (size.storage_bytes_per_s is None and steps_per_s(full, axis[0], model) >= full):
        return None
    return round(hit_rate(memory, model), 4)
