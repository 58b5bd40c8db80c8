"""Which worker cluster a job is offered to."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from synergy_clusters.choice import Prospect, soonest, worth_moving

TIMES = st.one_of(st.sampled_from([0.0, 5.0, inf]), st.floats(0, 1e9))
PROSPECTS = st.lists(st.builds(Prospect, TIMES, TIMES, st.sampled_from("abcdef")), unique_by=lambda one: one.cluster)


@given(PROSPECTS, st.randoms())
def test_the_soonest_start_wins_in_whatever_order_clusters_are_asked(prospects: list[Prospect], random: object) -> None:
    best = soonest(prospects)
    shuffled = list(prospects)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert soonest(shuffled) == best
    starts = [one.start_s for one in prospects if one.start_s < inf]
    assert (best is None) == (not starts)
    if best is not None:
        assert best.start_s == min(starts)
        equal = [one for one in prospects if (one.start_s, one.finish_s) == (best.start_s, best.finish_s)]
        assert best.cluster == min(one.cluster for one in equal)


def test_of_equal_starts_the_sooner_end_wins() -> None:
    assert soonest([Prospect(0, 90, "a"), Prospect(0, 60, "b")]) == Prospect(0, 60, "b")


@given(PROSPECTS, PROSPECTS)
def test_a_move_always_gains(one: list[Prospect], other: list[Prospect]) -> None:
    present, best = soonest(one), soonest(other)
    if worth_moving(present, best, 0.0):
        assert best is not None
        assert present is None or best.start_s < present.start_s


def test_small_gains_move_nothing() -> None:
    here = Prospect(1000, 2000, "a")
    assert not worth_moving(here, Prospect(800, 900, "b"), 0.0)
    assert worth_moving(here, Prospect(700, 900, "b"), 0.0)
    assert not worth_moving(Prospect(50, 60, "a"), Prospect(0, 10, "b"), 0.0)
    assert not worth_moving(here, None, 0.0)
    assert worth_moving(None, here, 0.0)
    assert worth_moving(Prospect(inf, inf, "a"), here, 0.0)
