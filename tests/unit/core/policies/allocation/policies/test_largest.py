"""`levels.largest` finds where a function that never falls passes 0."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synergy_core.policies.allocation.programme.levels import largest


@pytest.mark.parametrize(
    ("excess", "low", "high", "found"),
    [
        (lambda z: z - 2.0, 0.0, 10.0, 2.0),
        (lambda z: z - 2.0, 0.0, 1.0, 1.0),
        (lambda z: z - 2.0, 3.0, 4.0, 3.0),
        (lambda z: max(0.0, z - 7.0), 0.0, 10.0, 7.0),  # 0 for long: the end of that
        (lambda z: -1.0 if z < 5.0 else 1e9, 0.0, 10.0, 5.0),
        (lambda z: inf if z > 4.0 else z - 6.0, 0.0, 10.0, 4.0),
        (lambda z: z**9 - 1e-9, 0.0, 1e9, 0.1),
    ],
)
def test_where_it_passes_nothing(excess: object, low: float, high: float, found: float) -> None:
    assert callable(excess)
    assert largest(excess, low, high) == pytest.approx(found, rel=1e-14)


@settings(max_examples=50)
@given(bends=st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.01, 100.0)), min_size=1, max_size=8))
def test_on_bent_lines_it_is_just_below_what_is_too_much_and_takes_few_steps(bends: list[tuple[float, float]]) -> None:
    asked: list[float] = []

    def excess(z: float) -> float:
        asked.append(z)
        return sum(slope * max(0.0, z - start) for start, slope in bends) - 50.0

    z = largest(excess, 0.0, 1e6)
    assert excess(z) <= 0.0 < excess(z * (1.0 + 1e-13))
    assert len(asked) < 150


def _asked(excess: Callable[[float], float], high: float) -> int:
    """How often the search asks for the excess."""
    asked: list[float] = []

    def counting(z: float) -> float:
        asked.append(z)
        return excess(z)

    largest(counting, 0.0, high)
    return len(asked)


def test_on_powers_and_poles_it_takes_half_as_many_steps_as_bisection() -> None:
    powers = [_asked(lambda z, power=power: z**power - 0.3, 10.0) for power in np.linspace(0.2, 9.0, 45).tolist()]
    poles = [_asked(lambda z, top=top: inf if z >= 3 else 1 / (3 - z) - top, 10.0) for top in range(1, 46)]
    assert sum(powers) / 45 <= 29.5, "bisection takes 57"
    assert sum(poles) / 45 <= 23.5
    assert _asked(lambda z: 3.0 * z - 2.0, 10.0) <= 6, "a straight line"
