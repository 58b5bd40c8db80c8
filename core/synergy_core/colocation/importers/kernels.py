"""A job's GPU use from a profile of its kernels (the co-location thesis, sections 4.2.2 and 4.2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch of a kernel while the job has the GPU alone."""

    seconds: float
    bandwidth: float
    """Part of the GPU's memory bandwidth that it uses (p_i), 0 to 1."""
    occupancy: float
    """Part of the GPU's warps that are active (q_i), 0 to 1."""


def weighted_bandwidth(kernels: Sequence[Kernel]) -> float:
    """M = sum of p_i t_i in seconds (equation 4.2)."""
    return sum(kernel.bandwidth * kernel.seconds for kernel in kernels)


def weighted_occupancy(kernels: Sequence[Kernel]) -> float:
    """C = sum of q_i t_i in seconds (equation 4.3)."""
    return sum(kernel.occupancy * kernel.seconds for kernel in kernels)


def usage_of(kernels: Sequence[Kernel], *, seconds: float, memory_bytes: int = 0) -> Usage:
    """M and C per second of the `seconds` that the profiled iterations take without the profiler.

    The thesis compares C and M of the same number of iterations; jobs whose iterations differ in length are comparable
    only per second. Raises ValueError where `seconds` is less than the kernels take.
    """
    busy = sum(kernel.seconds for kernel in kernels)
    if seconds <= 0.0 or busy > seconds * 1.001:
        raise ValueError(f"the kernels take {busy:g} s, more than the {seconds:g} s of their iterations")
    return Usage(
        compute=min(1.0, weighted_occupancy(kernels) / seconds),
        bandwidth=min(1.0, weighted_bandwidth(kernels) / seconds),
        memory_bytes=memory_bytes,
    )
