"""Shares of nodes, and what is promised of them."""

from hypothesis import given
from hypothesis import strategies as st

from support.planning import GIB, node
from support.promises import BASE, share_per_gpu
from support.snapshots import nodes
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
