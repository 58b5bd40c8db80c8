"""Speed at less than full memory, computed instead of measured (Synergy, section 3.1).

The job reads its data through a MinIO cache: a data item in the cache stays there. Each epoch thus has the same number
of hits: the cached fraction of the data set. Fetching and computing overlap, therefore the slower of the two sets the
pace.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """A job's data and the storage it is read from. Sizes in bytes, bandwidth in bytes per second of the whole job.

    `batch_size` is the number of samples in a step over all GPUs; `process_bytes` is the memory the processes of the
    whole job need beside the cache.
    """

    dataset_bytes: int
    samples: int
    batch_size: int
    storage_bytes_per_s: float
    process_bytes: int

    def __post_init__(self) -> None:
        for name in ("dataset_bytes", "samples", "batch_size", "storage_bytes_per_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, is {getattr(self, name)}")
        if self.process_bytes < 0:
            raise ValueError(f"process_bytes must be at least 0, is {self.process_bytes}")


def hit_rate(memory_bytes: int, model: MemoryModel) -> float:
    """Fraction of an epoch's reads that a cache in `memory_bytes` answers; 0 where only the processes fit."""
    cached = min(model.dataset_bytes, max(0, memory_bytes - model.process_bytes))
    return cached / model.dataset_bytes


def steps_per_s(full_memory_steps_per_s: float, memory_bytes: int, model: MemoryModel) -> float:
    """Speed with `memory_bytes` of a job that makes `full_memory_steps_per_s` with its whole data set in memory.

    The smaller of the compute-bound speed and the fetch-bound one: bandwidth / (batch bytes x miss rate). 0 where the
    memory does not even hold the processes.
    """
    if memory_bytes < model.process_bytes:
        return 0.0
    miss_rate = 1.0 - hit_rate(memory_bytes, model)
    if miss_rate <= 0.0:
        return full_memory_steps_per_s
    fetched_bytes_per_step = model.batch_size * (model.dataset_bytes / model.samples) * miss_rate
    return min(full_memory_steps_per_s, model.storage_bytes_per_s / fetched_bytes_per_step)


def memory_grid(*, ceiling_bytes: int, step_bytes: int, floor_bytes: int = 0) -> tuple[int, ...]:
    """Memory points in bytes, ascending: the floor, the multiples of the step above it, and the ceiling.

    The floor is what the processes need, the ceiling what the node has or what holds the whole data set. Raises
    ValueError when the ceiling or step is below 1, or the floor is above the ceiling.
    """
    if step_bytes < 1:
        raise ValueError(f"step_bytes must be at least 1, is {step_bytes}")
    if ceiling_bytes < 1:
        raise ValueError(f"ceiling_bytes must be at least 1, is {ceiling_bytes}")
    if floor_bytes > ceiling_bytes:
        raise ValueError(f"floor_bytes {floor_bytes} is above ceiling_bytes {ceiling_bytes}; lower the floor")
    points = {ceiling_bytes, *range((floor_bytes // step_bytes + 1) * step_bytes, ceiling_bytes, step_bytes)}
    if floor_bytes > 0:
        points.add(floor_bytes)
    return tuple(sorted(points))
