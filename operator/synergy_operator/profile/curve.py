"""From measured points to the sensitivity matrix and the demand vector of the whole job."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from synergy_api.parts.profile import DemandVector, SensitivityMatrix
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_core.model.snapshot import FASTEST, SLOWEST, Profile
from synergy_core.profiling.adaptive_cpu_search import complete_curve
from synergy_core.profiling.cpu_grid import cpu_grid
from synergy_core.profiling.demand import demand_vector
from synergy_core.profiling.memory_check import seen_bandwidth
from synergy_core.profiling.memory_model import MemoryModel, memory_grid
from synergy_core.profiling.sensitivity import sensitivity_matrix
from synergy_operator.profile.points import Points, is_cpu_point, same_point, threads_of
from synergy_operator.profile.size import ProfileSize
from synergy_operator.views.batch_job import Target

_MEMORY_STEPS: Final = 16
_HEADROOM_PERCENT: Final = 110
"""The processes get 10% more than their peak in a profile run. The run is short, and beyond its limit a container is
killed."""
_MIB: Final = 1 << 20
_MOST_BANDWIDTH: Final = float(1 << 50)
"""Bytes per second. No storage gives more, whatever speed a run without cache tells."""


def job_matrix(spec: TrainingJobSpec, size: ProfileSize, points: Points) -> SensitivityMatrix:
    """The whole job's matrix on the series' GPU type. At least the highest CPU point has been measured."""
    grid = cpu_points_of(size)
    model = memory_model(spec, size, points)
    pod = sensitivity_matrix(grid, complete_curve(grid, speeds(size, points)), memory_axis(size, model), model)
    return SensitivityMatrix(
        gpu_type=size.gpu_type,
        cpu_millis=[size.of_job(value) for value in pod.cpu_millis],
        memory_bytes=[size.of_job(value) for value in pod.memory_bytes],
        steps_per_second=[[_representable(speed) for speed in row] for row in pod.steps_per_s],
        client_thread_percent=threads_of(points, size.gpu_type),
    )


def _representable(speed: float) -> float:
    """The speed, limited to the range that a matrix may hold. Extreme data sets otherwise lead to values
    outside of it."""
    return min(max(float(f"{speed:.6g}"), 2 * SLOWEST), FASTEST)


def job_demand(matrix: SensitivityMatrix, gpus: int, tolerance_percent: int) -> DemandVector:
    """The least CPU and memory that saturate the job on the matrix's GPU type, within the tolerance."""
    profile = Profile(
        cpu_millis=tuple(matrix.cpu_millis),
        memory_bytes=tuple(matrix.memory_bytes),
        steps_per_s=tuple(tuple(row) for row in matrix.steps_per_second),
    )
    demand = demand_vector(profile, gpus=gpus, tolerance=tolerance_percent / 100)
    return DemandVector(
        gpu_type=matrix.gpu_type,
        gpus=demand.gpus,
        cpu_millis=demand.cpu_millis,
        memory_bytes=demand.memory_bytes,
    )


def cpu_points_of(size: ProfileSize) -> tuple[int, ...]:
    """The CPU points that a series may measure, in milli-CPU, ascending."""
    return cpu_grid(ceiling_millis=size.ceiling_millis, step_millis=size.step_millis, floor_millis=size.floor_millis)


def speeds(size: ProfileSize, points: Points) -> dict[int, float]:
    """The measured speeds of the type by CPU point (milli-CPU), in steps per second.

    Points outside the grid are left out: it changes if a later grant has another CPU limit.
    """
    grid = frozenset(cpu_points_of(size))
    return {
        point.cpu_millis: point.steps_per_second
        for point in points
        if point.gpu_type == size.gpu_type and is_cpu_point(point) and point.cpu_millis in grid
    }


def has_data_set(spec: TrainingJobSpec) -> bool:
    """The spec describes the data as the memory model needs it."""
    return spec.dataset is not None and spec.batch_size is not None


def memory_model(spec: TrainingJobSpec, size: ProfileSize, points: Points) -> MemoryModel | None:
    """The memory model of a profile pod: its part of each batch and of the node's bandwidth, the whole data set in its
    cache.

    The bandwidth is the pool's. Otherwise it is measured by a run without cache, which is taken to use the whole
    node's. None if neither is known, or if the spec does not describe the data.
    """
    if spec.dataset is None or spec.batch_size is None:
        return None
    data, batch = spec.dataset, max(1, spec.batch_size * size.gpus // size.job_gpus)
    bandwidth = size.storage_bytes_per_s
    cold = Target(size.ceiling_millis, 0.0)
    for point in points:
        if bandwidth is None and same_point(point, size.gpu_type, cold):
            seen = seen_bandwidth(
                point.steps_per_second, dataset_bytes=data.bytes, samples=data.samples, batch_size=batch
            )
            bandwidth = min(size.node_part * seen, _MOST_BANDWIDTH)
    if bandwidth is None:
        return None
    resident = max((p.max_rss_bytes for p in points if p.gpu_type == size.gpu_type), default=0)
    return MemoryModel(
        dataset_bytes=data.bytes,
        samples=data.samples,
        batch_size=batch,
        storage_bytes_per_s=bandwidth,
        process_bytes=min(resident * _HEADROOM_PERCENT // 100, size.memory_bytes),
    )


def memory_axis(size: ProfileSize, model: MemoryModel | None) -> tuple[int, ...]:
    """Memory points of a profile pod in bytes, from the need of its processes to the memory that it was
    measured with."""
    if model is None:
        return (size.memory_bytes,)
    span = size.memory_bytes - model.process_bytes
    step = max(_MIB, -(-span // _MEMORY_STEPS // _MIB) * _MIB)
    return memory_grid(ceiling_bytes=size.memory_bytes, step_bytes=step, floor_bytes=model.process_bytes)


def memory_of(hit_rate: float, spec: TrainingJobSpec, size: ProfileSize, points: Points) -> int:
    """The memory of a pod in bytes at which this fraction of the data set is cached."""
    model = memory_model(spec, size, points)
    process = model.process_bytes if model is not None else 0
    return max(1, process + round(hit_rate * spec.dataset.bytes)) if spec.dataset else size.memory_bytes


def first_decrease(field: str, matrices: Iterable[SensitivityMatrix]) -> Finding | None:
    """The first place where a matrix falls as CPU or memory grows; None if there is none. `field` is the matrices'
    field."""
    for index, matrix in enumerate(matrices):
        rows = matrix.steps_per_second
        columns = [list(column) for column in zip(*rows, strict=True)]
        for lines, axis in ((columns, "CPU"), (rows, "memory")):
            for number, line in enumerate(lines):
                for position, (before, after) in enumerate(pairwise(line), start=1):
                    if after < before:
                        row, column = (position, number) if axis == "CPU" else (number, position)
                        facts = {"row": row, "column": column, "before": before, "after": after}
                        return say(Reason.MATRIX_FALLS, field=field, index=index, axis=axis, **facts)
    return None
