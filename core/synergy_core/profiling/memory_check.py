"""Whether the memory model holds: where to measure a job with less memory, and how far the model is off there."""

from collections.abc import Iterable, Sequence

from synergy_core.profiling.memory_model import MemoryModel, hit_rate, steps_per_s

_SLOWED = (0.5, 0.85)
"""A speed in this range, relative to that at full memory, shows both the bandwidth and the cached fraction."""


def seen_bandwidth(cold_steps_per_s: float, *, dataset_bytes: int, samples: int, batch_size: int) -> float:
    """Bytes per second that a run without any cache has read.

    Where storage did not slow that run this is less than storage can give, and the memory model then says rightly that
    memory does not matter.
    """
    return cold_steps_per_s * batch_size * (dataset_bytes / samples)


def check_point(full_steps_per_s: float, memory_axis: Sequence[int], model: MemoryModel) -> int | None:
    """The memory point (bytes) at which a run says most about the model; None where no point has less than all data.

    Of the points where storage sets the pace, the one whose speed is nearest to the middle of half and 85 % of that at
    full memory; where storage never does, the smallest, which would show a bandwidth that was given too high.
    """
    partly = [memory for memory in memory_axis if hit_rate(memory, model) < 1.0]
    if not partly:
        return None
    slowed = [memory for memory in partly if steps_per_s(full_steps_per_s, memory, model) < full_steps_per_s]
    aim = sum(_SLOWED) / 2 * full_steps_per_s
    return min(
        slowed or partly[:1], key=lambda memory: (abs(steps_per_s(full_steps_per_s, memory, model) - aim), memory)
    )


def model_error(pairs: Iterable[tuple[float, float]]) -> float | None:
    """The greatest deviation of a prediction from what was measured, relative to that; `pairs` are (predicted,
    measured) in steps per second. None where there are none."""
    return max((abs(predicted / measured - 1.0) for predicted, measured in pairs), default=None)


def thinned(axis: Sequence[int], most: int) -> tuple[int, ...]:
    """At most `most` (at least 2) values of an ascending axis, its ends among them, evenly by position."""
    if most < 2:
        raise ValueError(f"most must be at least 2, is {most}")
    if len(axis) <= most:
        return tuple(axis)
    return tuple(axis[round(number * (len(axis) - 1) / (most - 1))] for number in range(most))
