"""Speed for any amount, read from a matrix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner import promises
from support.planner.planning import GIB
from support.planner.snapshots import profiles
from synergy_core.model.snapshot import Profile
from synergy_core.throughput.speed import Speed

amounts = st.tuples(st.integers(1, 60000), st.integers(1, 400 * GIB))
MATRIX = Profile(cpu_millis=(1000, 3000), memory_bytes=(10, 20), steps_per_s=((1.0, 2.0), (3.0, 6.0)))


@pytest.mark.parametrize(
    ("at", "speed"),
    [
        ((1000, 10), 1.0),
        ((3000, 20), 6.0),
        ((2000, 10), 2.0),
        ((2000, 15), 3.0),
        ((9000, 99), 6.0),
        ((500, 10), 0.5),
        ((1000, 5), 0.5),
    ],
)
def test_between_the_points_it_is_linear_beyond_them_flat_below_them_in_proportion(
    at: tuple[int, int], speed: float
) -> None:
    assert Speed(MATRIX).at(at) == pytest.approx(speed)


@given(profiles(2), amounts)
def test_it_agrees_with_interpolation_by_another_road(profile: Profile, at: tuple[int, int]) -> None:
    assert Speed(profile).at(at) == pytest.approx(promises.speed(profile, *at), abs=1e-9)


@given(profiles(2), amounts, amounts)
def test_more_is_never_slower(profile: Profile, a: tuple[int, int], b: tuple[int, int]) -> None:
    more = (max(a[0], b[0]), max(a[1], b[1]))
    assert Speed(profile).at(more) >= Speed(profile).at(a) * (1 - 1e-12)


@given(profiles(2), amounts, st.floats(0.0, 1.0))
def test_the_smallest_amounts_reach_the_target_within_the_ceiling(
    profile: Profile, ceiling: tuple[int, int], fraction: float
) -> None:
    speed = Speed(profile)
    target = speed.at(ceiling) * fraction
    cpu, memory = speed.smallest(target, ceiling)
    assert speed.at((cpu, memory)) >= target
    assert cpu <= ceiling[0]
    assert memory <= ceiling[1]


def test_a_target_out_of_reach_gives_the_ceiling() -> None:
    assert Speed(MATRIX).smallest(99.0, (2500, 15)) == (2500, 15)


@given(profiles(2), amounts, amounts)
def test_the_next_step_is_faster_and_stays_below_the_ceiling(
    profile: Profile, now: tuple[int, int], limit: tuple[int, int]
) -> None:
    speed, ceiling = Speed(profile), (max(now[0], limit[0]), max(now[1], limit[1]))
    step = speed.next_faster(now, ceiling)
    if step is None:
        assert speed.at(ceiling) <= speed.at(now) * (1 + 1e-6) + 1e-9
    else:
        assert speed.at(step) > speed.at(now)
        assert now[0] <= step[0] <= ceiling[0]
        assert now[1] <= step[1] <= ceiling[1]
