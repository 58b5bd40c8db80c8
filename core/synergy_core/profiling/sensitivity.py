"""The sensitivity matrix from a CPU curve and the memory model (Synergy, section 3.1, figure 4)."""

from collections.abc import Sequence

from synergy_core.model.snapshot import Profile
from synergy_core.profiling.memory_model import MemoryModel, steps_per_s


def sensitivity_matrix(
    grid: Sequence[int], curve: Sequence[float], memory_axis: Sequence[int], model: MemoryModel | None
) -> Profile:
    """Matrix with a row per CPU point of `grid` (milli-CPU) and a column per point of `memory_axis` (bytes).

    `curve[i]` is the measured speed at `grid[i]` with full memory. Without a model the speed does not depend on memory.
    Raises ValueError when curve and grid differ in length.
    """
    if len(curve) != len(grid):
        raise ValueError(f"curve has {len(curve)} values for {len(grid)} CPU points; give one per point")
    rows = tuple(
        tuple(speed if model is None else steps_per_s(speed, memory, model) for memory in memory_axis)
        for speed in curve
    )
    return Profile(cpu_millis=tuple(grid), memory_bytes=tuple(memory_axis), steps_per_s=rows)
