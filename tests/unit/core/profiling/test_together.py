"""Speeds of two jobs while both train, against steps that are counted one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.profiling.together import LEAST_SECONDS, LEAST_STEPS, speeds_together


def _marks(begin: float, step_s: float, steps: int, every: int = 1) -> list[tuple[float, int]]:
    """A job of steady steps, of which every so many are told, and the last."""
    told = sorted({*range(0, steps + 1, every), steps})
    return [(begin + step * step_s, step) for step in told]


@given(
    st.tuples(st.integers(0, 40), st.integers(0, 40)),
    st.tuples(st.integers(1, 8), st.integers(1, 8)),
    st.integers(20, 90),
    st.integers(1, 7),
)
def test_of_steady_jobs_the_speeds_are_theirs_and_the_time_is_that_of_both(
    begins: tuple[int, int], paces: tuple[int, int], steps: int, every: int
) -> None:
    (begin, other_begin), (tenths, other_tenths) = begins, paces
    one, other = (
        _marks(float(begin), tenths / 10, steps, every),
        _marks(float(other_begin), other_tenths / 10, steps, every),
    )
    found = speeds_together(one, other)
    seconds = min(one[-1][0], other[-1][0]) - max(begin, other_begin)
    enough = seconds >= LEAST_SECONDS and seconds / (max(tenths, other_tenths) / 10) >= LEAST_STEPS
    if found is None:
        assert not enough or seconds < LEAST_SECONDS + 1e-6
    else:
        assert found.seconds == pytest.approx(seconds)
        assert found.speeds == pytest.approx((10 / tenths, 10 / other_tenths))


def test_only_the_time_of_both_counts() -> None:
    slowed = [*_marks(0.0, 0.1, 200), *((20.0 + 0.2 * step, 200 + step) for step in range(1, 101))]
    found = speeds_together(slowed, _marks(20.0, 0.5, 60))
    assert found is not None
    assert found.speeds == pytest.approx((5.0, 2.0))
    assert found.seconds == pytest.approx(20.0)


def test_too_little_tells_nothing() -> None:
    long = _marks(0.0, 0.1, 500)
    assert speeds_together(long, []) is None
    assert speeds_together(long, [(3.0, 4)]) is None
    assert speeds_together(long, _marks(60.0, 0.1, 500)) is None, "the one ends before the other begins"
    assert speeds_together(long, _marks(41.0, 0.1, 500)) is None, "nine seconds"
    assert speeds_together(long, _marks(0.0, 12.0, 4)) is None, "four steps"
