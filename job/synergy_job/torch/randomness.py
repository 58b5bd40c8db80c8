"""The random numbers of a process: PyTorch's, Python's and NumPy's, and those of its GPU where it has one.

NumPy is touched only where the process has loaded it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_MASK = (1 << 64) - 1


def random_states() -> dict[str, Any]:
    """The states of all generators that this process has, for `restore_random_states`."""
    states = _cpu_states()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: dict[str, Any]) -> None:
    """Set the generators to what `random_states` returned. A state for a generator that is not here is left out."""
    _restore_cpu(states)
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


@contextmanager
def preserved() -> Iterator[None]:
    """The generators of the CPU have the same states after the block as before it, whatever it draws."""
    states = _cpu_states()
    try:
        yield
    finally:
        _restore_cpu(states)


def seed(value: int) -> None:
    """Set the generators of the CPU to a state that follows from `value`, 64 bits."""
    torch.default_generator.manual_seed(value)
    random.seed(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(value & 0xFFFFFFFF)


def mixed(*values: int) -> int:
    """A number of 64 bits that follows from the values and their order.

    Each is mixed in by the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), so neighbouring epochs and
    batches get unrelated numbers.
    """
    result = 0
    for value in values:
        result = (result ^ (value & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        result = (result ^ result >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        result = (result ^ result >> 27) * 0x94D049BB133111EB & _MASK
        result ^= result >> 31
    return result


def _cpu_states() -> dict[str, Any]:
    states: dict[str, Any] = {"torch": torch.default_generator.get_state(), "python": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    return states


def _restore_cpu(states: dict[str, Any]) -> None:
    torch.default_generator.set_state(states["torch"])
    random.setstate(states["python"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(states["numpy"])
