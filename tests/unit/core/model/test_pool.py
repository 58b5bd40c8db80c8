"""Shares of nodes, and what is promised of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.planning import GIB, node
from support.planner.promises import BASE, share_per_gpu
from support.planner.snapshots import nodes
from synergy_core.model.pool import Pool, Reservations
from synergy_core.model.snapshot import Node


def test_the_share_is_what_the_node_has_divided_by_its_gpus() -> None:
    assert Pool("V100", [node("n1")]).share == [(3000, 500 * GIB // 8)]


def test_what_others_leave_unused_of_their_share_does_not_enlarge_ours() -> None:
    assert Pool("V100", [node("n1", gpus_used=4, cpu_millis_used=1000)]).share[0][0] == 3000


def test_what_others_use_beyond_their_share_makes_ours_smaller() -> None:
    assert Pool("V100", [node("n1", gpus_used=4, cpu_millis_used=16000)]).share[0][0] == 2000


def test_a_node_without_cpu_left_takes_nothing() -> None:
    pool = Pool("V100", [node("n1", cpu_millis_used=23999), node("n2")])
    assert pool.open.tolist() == [False, True]
    assert Reservations(pool).total == 8


def test_a_node_whose_pods_hold_more_than_it_has_takes_nothing() -> None:
    pool = Pool("V100", [node("n1", gpus_used=9, cpu_millis_used=99000)])
    assert (pool.gpus, pool.capacity[0][0]) == ([0], 0)


@given(nodes())
def test_every_free_gpu_of_a_node_can_have_its_share(cluster: tuple[Node, ...]) -> None:
    for one in cluster:
        pool = Pool(one.gpu_type, [one])
        assert pool.share[0] == tuple(share_per_gpu(one, name) for name in (*BASE, *sorted(one.further)))
        assert all(share * pool.gpus[0] <= left for share, left in zip(pool.share[0], pool.capacity[0], strict=True))
        if pool.open[0]:
            assert Reservations(pool).slots[0] == pool.gpus[0]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 8), st.integers(0, 9000)), max_size=6))
def test_giving_back_what_was_taken_restores_everything(taken: list[tuple[int, int, int]]) -> None:
    reservations = Reservations(Pool("V100", [node("n1"), node("n2", 4)]))
    before = (list(reservations.free_gpus), [list(free) for free in reservations.free], reservations.total)
    reserved = [((where, gpus, (cpu * gpus, GIB)),) for where, gpus, cpu in taken]
    for reservation in reserved:
        reservations.take(reservation)
        assert reservations.total == int(reservations.slots.sum())
    for reservation in reserved:
        reservations.give_back(reservation)
    assert (reservations.free_gpus, reservations.free, reservations.total) == before


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-2, 3), st.booleans()), max_size=8))
def test_what_is_left_is_the_same_as_arrays(changes: list[tuple[int, int, bool]]) -> None:
    reservations = Reservations(Pool("V100", [node("n1"), node("n2", 4)]))
    for where, gpus, looks in changes:
        reservations.take(((where, gpus, (gpus * 1000, GIB)),))
        if looks:
            free_gpus, free = reservations.left()
            assert free_gpus.tolist() == reservations.free_gpus
            assert free.tolist() == reservations.free
    other = reservations.copy()
    other.take(((0, 1, (1, 1)),))
    assert [one.tolist() for one in other.left()] == [other.free_gpus, other.free]
    assert [one.tolist() for one in reservations.left()] == [reservations.free_gpus, reservations.free]


def test_what_is_free_of_a_node_is_weighed_below_one_whatever_it_has() -> None:
    pool = Pool("V100", [node("a", 2, cpus=4, gib=30), node("b", 16, cpus=96, gib=1500)])
    weighed = (np.array(pool.capacity) * pool.weight).sum(axis=1)
    assert 0.0 < weighed[0] < weighed[1] < 1.0


@pytest.mark.parametrize(("percent", "limits"), [(100, False), (99, True), (50, True)])
def test_threads_are_limited_where_a_client_has_less_than_all(percent: int, limits: bool) -> None:
    assert Pool("V100", [node("n1"), node("n2", client_thread_percent=percent)]).limits_threads is limits


def test_shared_gpus_matter_only_where_the_nodes_differ_in_that() -> None:
    mixed = Pool("V100", [node("n1", replicas=2), node("n2")])
    assert mixed.shared is not None
    assert mixed.shared.tolist() == [True, False]
    assert Pool("V100", [node("n1"), node("n2")]).shared is None
    assert Pool("V100", [node("n1", replicas=2), node("n2", replicas=2)]).shared is None


@pytest.mark.parametrize(("gpus", "cpu_millis"), [(1, 24000), (2, 12000), (8, 3000), (16, 3000)])
def test_a_job_of_one_node_could_have_it_whole_and_a_larger_one_its_share(gpus: int, cpu_millis: int) -> None:
    assert Pool("V100", [node("n1"), node("n2", 4, cpus=4)]).most_per_gpu(gpus)[0] == cpu_millis


def test_gpus_are_stranded_that_too_little_cpu_is_left_beside() -> None:
    """One GPU with 12 of 24 CPUs leaves 12 CPUs, shares for four of the other seven GPUs."""
    reservations = Reservations(Pool("V100", [node("n1")]))
    assert reservations.stranded(np.array([[12000, GIB]]), 1).tolist() == [3]
    assert reservations.stranded(np.array([[24000, GIB]]), 1).tolist() == [7]
    assert reservations.stranded(np.array([[3000, GIB]]), 1).tolist() == [0]


def test_which_nodes_are_named_is_right_for_any_number_of_lists() -> None:
    pool = Pool("V100", [node(f"n{index}") for index in range(200)])
    for _ in range(2):
        for index in range(200):
            assert np.flatnonzero(pool.named((f"n{index}", "gone"))).tolist() == [pool.index[f"n{index}"]]
    assert not pool.named(()).any()
