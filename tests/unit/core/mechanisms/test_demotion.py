"""Demotion over random packings: it helps, touches no one needlessly, or leaves no trace (section 4.2, step 2a)."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.planner.planning import holding, job, node, places, planned
from synergy_core.mechanisms.demotion import demote
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.pool import Pool, Reservations, shares_of
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry

_CPU, _MEMORY, _UNIT = 24000, 500, 2**30

amounts = st.tuples(st.integers(1, 6000), st.integers(1, 120)).map(lambda pair: (pair[0], pair[1] * _UNIT))


@st.composite
def packings(draw: st.DrawFn) -> Packing:
    """Two nodes with jobs on one or both of them, each with what it has and what it can be cut down to."""
    pool = Pool("V100", [node("n1", cpus=_CPU // 1000, gib=_MEMORY), node("n2", cpus=_CPU // 1000, gib=_MEMORY)])
    packing = Packing(PoolSelection(Reservations(pool)))
    for index in range(draw(st.integers(0, 6))):
        assignments = draw(st.sampled_from((((0, 1),), ((1, 2),), ((0, 2), (1, 1)))))
        gpus = sum(count for _, count in assignments)
        has, least = draw(amounts), draw(amounts)
        if packing.affords(assignments, has):
            entry = QueueEntry(JobInfo(job(f"j{index}", gpus), [pool], 0.05))
            packing.assign(entry, shares_of(assignments, has), shares_of(assignments, least))
    return packing


@given(packings(), st.sampled_from((((0, 1),), ((0, 1), (1, 1)))), amounts)
def test_it_makes_the_room_that_is_asked_for_or_changes_nothing(packing: Packing, assignments, per_gpu) -> None:
    free, assigned = packing.free.copy(), dict(packing.assigned)
    missing = not packing.affords(assignments, per_gpu)
    if demote(packing, assignments, per_gpu):
        assert packing.affords(assignments, per_gpu)
        assert (packing.free >= 0).all()
        changed = {entry for entry in assigned if packing.assigned[entry] != assigned[entry]}
        assert bool(changed) <= missing
        assert all(packing.assigned[entry].shares == assigned[entry].least for entry in changed)
    else:
        assert missing
        assert np.array_equal(packing.free, free)
        assert packing.assigned == assigned


@given(packings(), st.sampled_from((((0, 1),), ((0, 1), (1, 1)))), amounts)
def test_it_can_be_undone(packing: Packing, assignments, per_gpu) -> None:
    free, assigned, mark = packing.free.copy(), dict(packing.assigned), packing.mark()
    demote(packing, assignments, per_gpu)
    packing.undo_to(mark)
    assert np.array_equal(packing.free, free)
    assert packing.assigned == assigned


def test_a_node_that_gives_more_than_it_has_keeps_nobody_off_another() -> None:
    """n2 has lost all but half a CPU and 1 GiB; `spread` on both is cut down for a newcomer on n1 all the same."""
    nodes = [node("n1", 2, cpus=8, gib=40), replace(node("n2", 1, gib=1), cpu_millis=500)]
    jobs = [
        job("there", running=holding("there", ("n2", 1, 4, 20))),
        job("spread", 2, placement="spread", running=holding("spread", ("n1", 1, 4, 21), ("n2", 1, 4, 21))),
        job("newcomer"),
    ]
    made = planned(nodes, jobs, mode="fill")
    assert places(made) == {"there": {"n2": 1}, "spread": {"n1": 1, "n2": 1}, "newcomer": {"n1": 1}}


def test_where_no_job_is_enough_the_one_that_brings_it_nearest_is_cut_down_first() -> None:
    """Nearest by parts of a node: of a node's CPUs, 9 of 10 that lack are far more than 1.5 of 2 GiB of its memory."""
    pool = Pool("V100", [node("n1", cpus=24, gib=500)])
    packing = Packing(PoolSelection(Reservations(pool)))
    for name, (cpus, gib), (least_cpus, least_gib) in (
        ("cpu", (10, 101), (1, 100)),
        ("memory", (4, 101.5), (4, 100)),
        ("both", (5, 102), (4, 101)),
        ("rest", (5, 195.5), (5, 195.5)),
    ):
        has, least = (cpus * 1000, int(gib * _UNIT)), (least_cpus * 1000, int(least_gib * _UNIT))
        entry = QueueEntry(JobInfo(job(name), [pool], 0.05))
        packing.assign(entry, shares_of(((0, 1),), has), shares_of(((0, 1),), least))
    assert packing.free.tolist() == [[0, 0]]
    assert demote(packing, ((0, 1),), (10_000, 2 * _UNIT))
    cut_down = {entry.name for entry, one in packing.assigned.items() if one.shares == one.least}
    assert cut_down == {"cpu", "both", "rest"}
