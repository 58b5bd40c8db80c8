"""The demand vector: the smallest CPU and memory that saturate a job (Synergy, section 3.2)."""

from dataclasses import dataclass

from synergy_core.model.snapshot import Profile


@dataclass(frozen=True, slots=True)
class Demand:
    """What the whole job wants: GPUs, milli-CPU, bytes."""

    gpus: int
    cpu_millis: int
    memory_bytes: int


def demand_vector(profile: Profile, *, gpus: int, tolerance: float = 0.05) -> Demand:
    """Smallest point of the matrix whose speed is within `tolerance` of the best.

    The fewest CPUs come first, then the least memory at that CPU. Where one bound sets the pace (CPU or storage, as in
    the memory model) no other point is smaller in either dimension.
    """
    if not 0.0 <= tolerance < 1.0:
        raise ValueError(f"tolerance must be at least 0 and below 1, is {tolerance}")
    best = max(max(row) for row in profile.steps_per_s)
    target = best * (1.0 - tolerance)
    cpu, row = next(
        (cpu, row) for cpu, row in zip(profile.cpu_millis, profile.steps_per_s, strict=True) if max(row) >= target
    )
    memory = next(memory for memory, speed in zip(profile.memory_bytes, row, strict=True) if speed >= target)
    return Demand(gpus=gpus, cpu_millis=cpu, memory_bytes=memory)
