"""On which nodes GPUs go."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.model.placement import NodeCounts, choose, nodes_needed

rooms = st.lists(st.integers(0, 8), min_size=1, max_size=8)


def _choose(placement: str, need: int, room: list[int]) -> dict[int, int] | None:
    assignments = choose(placement, need, np.array(room), np.array(room, dtype=float))
    return None if assignments is None else dict(assignments)


def test_one_node_is_the_fullest_that_has_the_room() -> None:
    assert _choose("auto", 2, [8, 3, 2, 4]) == {2: 2}


def test_auto_takes_the_fewest_nodes_and_for_the_rest_the_fullest() -> None:
    assert _choose("auto", 10, [8, 3, 2, 4]) == {0: 8, 2: 2}


def test_consolidate_waits_rather_than_being_split() -> None:
    assert _choose("consolidate", 10, [8, 3, 2, 4]) is None


def test_spread_uses_up_the_fullest_nodes_first() -> None:
    assert _choose("spread", 6, [8, 3, 2, 4]) == {2: 2, 1: 3, 3: 1}


@given(st.sampled_from(("auto", "spread")), st.integers(1, 30), rooms)
def test_a_job_that_may_be_split_fits_exactly_when_there_are_enough_gpus(
    placement: str, need: int, room: list[int]
) -> None:
    assignments = _choose(placement, need, room)
    assert (assignments is not None) == (sum(room) >= need)
    if assignments is not None:
        assert sum(assignments.values()) == need
        assert all(0 < gpus <= room[node] for node, gpus in assignments.items())
        if placement == "auto":
            assert len(assignments) == nodes_needed(need, np.array(room))


@given(st.integers(1, 10), rooms)
def test_a_job_that_may_not_be_split_fits_exactly_when_one_node_has_the_room(need: int, room: list[int]) -> None:
    assert (_choose("consolidate", need, room) is not None) == (max(room) >= need)


@given(rooms, st.lists(st.integers(0, 3), min_size=8, max_size=8), st.integers(1, 30))
def test_many_nodes_are_those_with_the_most_room_and_of_these_the_fullest(
    room: list[int], empty: list[int], need: int
) -> None:
    """One by one, as it is said: the next node with the most room, until one has enough for the rest."""
    wanted: dict[int, int] | None = {}
    left, rest = sorted(range(len(room)), key=lambda node: (-room[node], empty[node], node)), need
    while wanted is not None and rest:
        node = left.pop(0) if left else None
        if node is None or room[node] == 0:
            wanted = None
        elif room[node] >= rest:
            enough = [one for one in [node, *left] if room[one] >= rest]
            wanted[min(enough, key=lambda one: (empty[one], one))] = rest
            rest = 0
        else:
            wanted[node] = room[node]
            rest -= room[node]
    emptiness = np.array(empty[: len(room)], dtype=float)
    assignments = choose("auto", need, np.array(room), emptiness)
    assert (None if assignments is None else dict(assignments)) == wanted


@given(rooms, st.integers(1, 70))
def test_as_many_nodes_are_needed_as_counts_say(room: list[int], need: int) -> None:
    assert nodes_needed(need, np.array(room)) == NodeCounts(np.array(room)).fewest(need)
