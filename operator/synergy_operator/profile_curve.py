"""From measured points to the next point, and at the end to the matrix and the demand vector of the whole job."""

from typing import Final

from synergy_api.profile import DemandVector, ProfilePoint, SensitivityMatrix
from synergy_api.scheduling_policy import Profiling
from synergy_api.training_job import TrainingJobSpec
from synergy_core.model import Profile
from synergy_core.profiling.adaptive_cpu_search import complete_curve, next_cpu_point
from synergy_core.profiling.cpu_grid import cpu_grid
from synergy_core.profiling.demand import demand_vector
from synergy_core.profiling.memory_model import MemoryModel, memory_grid
from synergy_core.profiling.sensitivity import sensitivity_matrix
from synergy_operator.profile_size import ProfileSize

_MEMORY_STEPS: Final = 16
_HEADROOM_PERCENT: Final = 110
"""The processes get a tenth more than their peak in a profile run, which is short: beyond the limit they are killed."""
_MIB: Final = 1 << 20

Points = tuple[ProfilePoint, ...]


def next_point(size: ProfileSize, points: Points, profiling: Profiling) -> int | None:
    """CPU of the next profile run in milli-CPU; None when the series on this GPU type is complete."""
    return next_cpu_point(
        _grid(size),
        _measured(size, points),
        threshold=profiling.threshold_percent / 100,
        max_points=profiling.max_points,
    )


def job_matrix(spec: TrainingJobSpec, size: ProfileSize, points: Points) -> SensitivityMatrix:
    """The whole job's matrix on the series' GPU type; at least the highest point is measured."""
    grid = _grid(size)
    curve = complete_curve(grid, _measured(size, points))
    model = _memory_model(spec, size, points)
    pod = sensitivity_matrix(grid, curve, _memory_axis(size, model), model)
    return SensitivityMatrix(
        gpu_type=size.gpu_type,
        cpu_millis=[size.of_job(value) for value in pod.cpu_millis],
        memory_bytes=[size.of_job(value) for value in pod.memory_bytes],
        steps_per_second=[[float(f"{speed:.6g}") for speed in row] for row in pod.steps_per_s],
    )


def job_demand(matrix: SensitivityMatrix, gpus: int) -> DemandVector:
    """The smallest CPU and memory that saturate the job on the matrix' GPU type."""
    profile = Profile(
        cpu_millis=tuple(matrix.cpu_millis),
        memory_bytes=tuple(matrix.memory_bytes),
        steps_per_s=tuple(tuple(row) for row in matrix.steps_per_second),
    )
    demand = demand_vector(profile, gpus=gpus)
    return DemandVector(
        gpu_type=matrix.gpu_type,
        gpus=demand.gpus,
        cpu_millis=demand.cpu_millis,
        memory_bytes=demand.memory_bytes,
    )


def _grid(size: ProfileSize) -> tuple[int, ...]:
    return cpu_grid(ceiling_millis=size.ceiling_millis, step_millis=size.step_millis, floor_millis=size.floor_millis)


def _measured(size: ProfileSize, points: Points) -> dict[int, float]:
    """Points of the type that are still on the grid: it moves if a later grant has another ceiling."""
    grid = frozenset(_grid(size))
    return {p.cpu_millis: p.steps_per_second for p in points if p.gpu_type == size.gpu_type and p.cpu_millis in grid}


def _memory_model(spec: TrainingJobSpec, size: ProfileSize, points: Points) -> MemoryModel | None:
    """The pod's model: its part of each batch, its part of the node's bandwidth, the whole data set in its cache."""
    if spec.dataset is None or spec.batch_size is None or size.storage_bytes_per_s is None:
        return None
    resident = max((p.max_rss_bytes for p in points if p.gpu_type == size.gpu_type), default=0)
    return MemoryModel(
        dataset_bytes=spec.dataset.bytes,
        samples=spec.dataset.samples,
        batch_size=max(1, spec.batch_size * size.gpus // size.job_gpus),
        storage_bytes_per_s=size.storage_bytes_per_s,
        process_bytes=min(resident * _HEADROOM_PERCENT // 100, size.memory_bytes),
    )


def _memory_axis(size: ProfileSize, model: MemoryModel | None) -> tuple[int, ...]:
    if model is None:
        return (size.memory_bytes,)
    span = size.memory_bytes - model.process_bytes
    step = max(_MIB, -(-span // _MEMORY_STEPS // _MIB) * _MIB)
    return memory_grid(ceiling_bytes=size.memory_bytes, step_bytes=step, floor_bytes=model.process_bytes)
