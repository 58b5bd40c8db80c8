"""Every step of a packing can be undone."""

from hypothesis import given
from hypothesis import strategies as st

from support.planner.planning import job, node
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.pool import Pool, Reservations, shares_of
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry

steps = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 2000), st.sampled_from(((0,), (1,), (0, 1)))), max_size=12)


def _state(packing: Packing) -> object:
    return (
        packing.free.tolist(),
        dict(packing.assigned),
        [sorted(entry.name for entry in on_node) for on_node in packing.on_node],
        packing.reservations.slots.tolist(),
        packing.reservations.floating,
    )


def _do(packing: Packing, entry: QueueEntry, amount: int, nodes: tuple[int, ...]) -> None:
    """Place a job that has no assigned, resize one that has."""
    assignments = tuple((index, 1) for index in nodes)
    shares = shares_of(assignments, (amount, amount))
    if entry in packing.assigned:
        packing.resize(entry, shares_of(packing.assigned[entry].assignments, (amount, amount)))
    else:
        packing.bind(shares)
        packing.assign(entry, shares, shares)


@given(steps, steps)
def test_undoing_to_a_mark_restores_the_state_at_the_mark(before: list, after: list) -> None:
    pool = Pool("V100", [node("n1"), node("n2")])
    packing = Packing(PoolSelection(Reservations(pool)))
    entries = [QueueEntry(JobInfo(job(f"j{index}"), [pool], 0.05)) for index in range(5)]
    for index, amount, nodes in before:
        _do(packing, entries[index], amount, nodes)
    state, mark = _state(packing), packing.mark()
    for index, amount, nodes in after:
        _do(packing, entries[index], amount, nodes)
    packing.undo_to(mark)
    assert _state(packing) == state
    packing.undo_to(0)
    assert _state(packing) == _state(Packing(PoolSelection(Reservations(pool))))
