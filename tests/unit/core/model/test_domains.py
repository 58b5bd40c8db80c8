"""Gangs of several nodes go to the narrowest domain that holds them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.planning import job, node, places, planned
from synergy_core.model.domains import Domains
from synergy_core.model.placement import choose
from synergy_core.model.snapshot import Node, Placement


def rack(name: str, *domains: str, gpus: int = 8) -> Node:
    return node(name, gpus, domains=domains)


FOUR = [rack("n1", "east"), rack("n2", "west"), rack("n3", "east"), rack("n4", "west")]


@pytest.mark.parametrize("mechanism", ["tune", "proportional", "greedy", "opt", "tetris-tune", "drf-tune"])
def test_a_gang_of_two_nodes_is_in_one_rack(mechanism: str) -> None:
    first, second = job("a", 16), job("b", 16, arrival_s=1.0)
    found = places(planned(FOUR, [first, second], mechanism=mechanism))
    assert sorted(map(sorted, (found["a"], found["b"]))) == [["n1", "n3"], ["n2", "n4"]]


def test_without_domains_it_is_on_the_first_nodes() -> None:
    assert places(planned([node("n1"), node("n2"), node("n3")], [job("a", 16)])) == {"a": {"n1": 8, "n2": 8}}


def test_the_narrowest_domain_counts_and_equal_names_in_other_blocks_are_others() -> None:
    of = {"n1": ("b1", "r1"), "n2": ("b1", "r2"), "n3": ("b2", "r1"), "n4": ("b2", "r1"), "n5": ("b1",)}
    nodes = [rack(name, *domains) for name, domains in of.items()]
    assert set(places(planned(nodes, [job("a", 16)]))["a"]) == {"n3", "n4"}
    assert set(places(planned(nodes, [job("a", 24)]))["a"]) == {"n1", "n2", "n5"}


def test_the_domain_with_the_least_room_keeps_the_others_whole() -> None:
    nodes = [*(rack(f"a{index}", "large") for index in range(3)), rack("b1", "small"), rack("b2", "small")]
    assert set(places(planned(nodes, [job("j", 16)]))["j"]) == {"b1", "b2"}


def test_a_domain_costs_no_more_nodes() -> None:
    """Three nodes of one rack would do; two of different racks are fewer."""
    nodes = [rack("a1", "r1"), rack("b1", "r2"), *(rack(f"c{index}", "r3", gpus=4) for index in range(4))]
    assert set(places(planned(nodes, [job("j", 16)]))["j"]) == {"a1", "b1"}


def test_jobs_that_do_not_mind_take_what_is_left_over() -> None:
    found = planned(FOUR, [job("a", 16, placement="spread")])
    assert found == planned([node(one.name) for one in FOUR], [job("a", 16, placement="spread")])


names = st.sampled_from(("", "x", "y"))
clusters = st.lists(st.tuples(st.integers(0, 4), names, names), min_size=1, max_size=7)


def _nodes(cluster: list[tuple[int, str, str]]) -> list[Node]:
    """The first empty name ends a node's domains."""
    return [
        rack(f"n{index}", *((wide, narrow) if wide and narrow else (wide,) if wide else ()), gpus=max(1, gpus))
        for index, (gpus, wide, narrow) in enumerate(cluster)
    ]


@given(clusters, st.integers(2, 16), st.sampled_from(("auto", "pack")))
def test_against_every_set_of_nodes(cluster: list[tuple[int, str, str]], need: int, placement: Placement) -> None:
    nodes = _nodes(cluster)
    room = np.array([gpus for gpus, _, _ in cluster], dtype=np.int64)
    emptiness = room.astype(np.float64)
    anywhere = choose(placement, need, room, emptiness)
    if anywhere is None or len(anywhere) == 1:
        return
    found = Domains(nodes).choose(placement, need, room, emptiness, (len(anywhere), 0))
    sets = [
        one
        for size in range(1, len(anywhere) + 1)
        for one in combinations(range(len(nodes)), size)
        if room[list(one)].sum() >= need
    ]
    nearest = max(_common([nodes[index] for index in one]) for one in sets)
    assert (found is None) == (nearest == 0)
    if found is not None:
        assert sum(gpus for _, gpus in found) == need
        assert all(gpus <= room[index] for index, gpus in found)
        assert len(found) <= len(anywhere)
        assert _common([nodes[index] for index, _ in found]) == nearest


def _common(nodes: list[Node]) -> int:
    """Levels that all of them share."""
    first, *others = (one.domains for one in nodes)
    depth = 0
    while depth < len(first) and all(one[: depth + 1] == first[: depth + 1] for one in others):
        depth += 1
    return depth
