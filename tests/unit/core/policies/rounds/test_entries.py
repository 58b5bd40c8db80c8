"""The entries of an allocation matrix: their order, and X / f with the time that jobs have had (Gavel, section 5)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.planner.allocation import problem
from support.planner.planning import job
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.queue import Queue
from synergy_core.policies.rounds.entries import Entries, Time, entries_of

ROUND_S = 100.0
NOW = 1000.0


def _entries(
    made: Problem,
    x: Sequence[Sequence[float]],
    *,
    pressed: Sequence[bool] = (),
    accounting: bool = False,
    names: Sequence[str] = (),
    **of_jobs: Sequence[Any],
) -> Entries:
    jobs: list[Job] = []
    for at, name in enumerate(made.jobs):
        told = {field: values[at] for field, values in of_jobs.items()}
        jobs.append(job(names[at] if names else name, int(made.scale[at]), **told))
    queue = Queue(NOW, tuple(jobs), lambda _: 1.0, round_s=ROUND_S)
    flags = np.array(pressed or [False] * len(jobs), dtype=bool)
    return entries_of(queue, jobs, made, Time(jobs, made, np.array(x)), flags, accounting=accounting)


def test_x_over_f_counts_the_time_on_the_type_plus_half_a_round_in_the_life_plus_a_round() -> None:
    """1,000 s old: (1,000 + 100) / (150 + 50). One that comes in the future is as old as one that comes now."""
    made = problem([[1.0, 1.0]] * 2, [1, 1])
    found = _entries(
        made,
        [[0.5, 0.25], [0.5, 0.0]],
        arrival_s=[0.0, 2 * NOW],
        received_s=[{"t0": 150.0}, {"t0": 0.0, "elsewhere": 1e9}],
    )
    assert found.shares.priority == pytest.approx([0.5 * 1100 / 200, 0.25 * 1100 / 50, 0.5 * 100 / 50])
    assert found.shares.share.tolist() == [0.5, 0.25, 0.5]
    assert (found.job.tolist(), found.column.tolist()) == ([0, 0, 1], [0, 1, 0])
    assert found.partner.tolist() == [-1, -1, -1]
    assert found.alone.all()
    assert found.ways(2) == ((-1, 0.5),)


def test_age_counts_from_a_jobs_own_arrival() -> None:
    found = _entries(problem([[1.0]] * 2, [1]), [[0.5]] * 2, arrival_s=[400.0, 900.0])
    assert found.shares.priority == pytest.approx([0.5 * 700 / 50, 0.5 * 200 / 50])


def test_a_millionth_is_a_solvers_rounding() -> None:
    assert len(_entries(problem([[1.0]] * 3, [1]), [[1e-6], [1.001e-6], [0.0]]).job) == 1


def _spread_on_t0(parts: Sequence[tuple[float, float]]) -> Problem:
    """Two types; a third column for jobs that are spread on the first."""
    made = problem([[1.0, 1.0]] * len(parts), [4, 4], scale=[2] * len(parts))
    speeds = np.array([[near, 1.0, far] for near, far in parts])
    columns = (*made.types, "t0_unconsolidated")
    none = np.empty((0, 3, 2))
    return replace(made, columns=columns, column_type=np.array([0, 1, 0]), throughputs=speeds, pair_throughputs=none)


def test_time_that_a_job_was_spread_counts_in_that_column_only_if_it_has_two() -> None:
    """Of 300 s on the type 200 were spread. The second job has one speed there, in whatever way it is placed."""
    made = _spread_on_t0([(1.0, 0.5), (1.0, 0.0)])
    had = {"received_s": [{"t0": 300.0, "t1": 70.0}] * 2, "received_spread_s": [{"t0": 200.0}] * 2}
    found = _entries(made, [[0.2, 0.2, 0.2], [0.2, 0.2, 0.0]], **had)
    seconds = np.array([100.0, 70.0, 200.0, 300.0, 70.0])
    assert found.shares.priority == pytest.approx(0.2 * 1100 / (seconds + 50))
    assert found.shares.type_.tolist() == [0, 1, 0, 0, 1]
    assert found.shares.gpus.tolist() == [2.0] * 5


PAIRED = {"pairs": [(0, 1), (1, 2)], "pair_throughputs": [[[0.9, 0.9], [0.9, 0.9]]] * 2}
X = [[0.1, 0.0], [0.0, 0.0], [0.0, 0.3], [0.2, 0.0], [0.4, 0.0]]
"""The first job alone and with the second on t0; the second with the third there; the third alone on t1."""
HAD = {"received_s": [{"t0": 50.0}, {"t0": 150.0}, {}]}
OWED = {(0, 0): 0.3 * 1100 / 100, (1, 0): 0.6 * 1100 / 200, (2, 0): 0.4 * 1100 / 50, (2, 1): 0.3 * 1100 / 50}
"""X / f of each job by column: all its time there, alone and with others."""


def test_usually_a_job_alone_and_each_of_its_pairs_are_entries_and_a_pair_is_owed_the_mean() -> None:
    found = _entries(problem([[1.0, 1.0]] * 3, [2, 2], **PAIRED), X, **HAD)
    rows = zip(found.job.tolist(), found.partner.tolist(), found.column.tolist(), strict=True)
    assert list(rows) == [(0, -1, 0), (0, 1, 0), (1, 2, 0), (2, -1, 1)]
    mean = [(OWED[0, 0] + OWED[1, 0]) / 2, (OWED[1, 0] + OWED[2, 0]) / 2]
    assert found.shares.priority == pytest.approx([OWED[0, 0], *mean, OWED[2, 1]])
    assert found.shares.share.tolist() == [0.1, 0.2, 0.4, 0.3]
    assert found.shares.row.tolist() == [0, 3, 4, 2]
    assert found.alone.tolist() == [True, False, False, True]
    assert [found.ways(entry) for entry in range(4)] == [((-1, 0.1),), ((1, 0.2),), ((2, 0.4),), ((-1, 0.3),)]


def test_in_an_accounting_round_each_job_has_one_entry_by_column_with_all_its_ways() -> None:
    found = _entries(problem([[1.0, 1.0]] * 3, [2, 2], **PAIRED), X, accounting=True, **HAD)
    places = list(zip(found.job.tolist(), found.column.tolist(), strict=True))
    assert places == [(0, 0), (1, 0), (2, 1), (2, 0)]
    assert found.shares.priority == pytest.approx([OWED[place] for place in places])
    assert found.shares.share == pytest.approx([0.3, 0.6, 0.3, 0.4])
    assert found.shares.row.tolist() == [0, 1, 2, 2]
    assert found.alone.tolist() == [True, False, True, False]
    assert [list(found.ways(entry)) for entry in range(4)] == [
        [(-1, 0.1), (1, 0.2)],
        [(0, 0.2), (2, 0.4)],
        [(-1, 0.3)],
        [(1, 0.4)],
    ]
    assert found.partner.tolist() == [-1, -1, -1, 1]
    assert sorted(found.several) == [0, 1]


def test_in_an_accounting_round_without_pairs_the_entries_are_the_usual_ones() -> None:
    made = problem([[1.0, 1.0]] * 2, [1, 1])
    x = [[0.5, 0.25], [0.0, 0.5]]
    usual, accounting = _entries(made, x), _entries(made, x, accounting=True)
    assert accounting.shares.row.tolist() == usual.shares.row.tolist() == [0, 0, 1]
    assert accounting.shares.priority.tolist() == usual.shares.priority.tolist()


def test_pairs_of_a_job_come_in_the_order_of_their_partners_names_after_the_job_alone() -> None:
    both = [[[0.9, 0.9]]] * 3
    made = problem([[1.0]] * 4, [2], pairs=[(0, 1), (0, 2), (0, 3)], pair_throughputs=both)
    x = [[0.1], [0.0], [0.0], [0.0], [0.2], [0.2], [0.2]]
    found = _entries(made, x, names=["first", "c", "a", "b"])
    assert found.partner.tolist() == [-1, 2, 3, 1]


@pytest.mark.parametrize("accounting", [False, True])
def test_a_pair_presses_if_one_of_the_two_does(accounting: bool) -> None:
    made = problem([[1.0, 1.0]] * 3, [2, 2], **PAIRED)
    for at, usual in ((0, [True, True, False, False]), (2, [False, False, True, True])):
        pressed = [index == at for index in range(3)]
        found = _entries(made, X, pressed=pressed, accounting=accounting)
        own = [pressed[index] for index in found.job.tolist()]
        assert found.shares.pressed.tolist() == (own if accounting else usual)


def test_alone_beside_one_that_presses_a_job_does_not() -> None:
    """The last job's index is that of no partner, seen from the end."""
    made = problem([[1.0]] * 2, [1], pairs=[(0, 1)], pair_throughputs=[[[0.9, 0.9]]])
    found = _entries(made, [[0.5], [0.5], [0.0]], pressed=[False, True])
    assert found.shares.pressed.tolist() == [False, True]


def test_in_an_accounting_round_a_column_that_a_job_has_alone_comes_before_those_it_shares() -> None:
    made = problem([[1.0, 1.0]] * 2, [1, 1], pairs=[(0, 1)], pair_throughputs=[[[0.9, 0.9], [0.0, 0.0]]])
    found = _entries(made, [[0.0, 0.0], [0.0, 0.2], [0.3, 0.0]], accounting=True)
    assert list(zip(found.job.tolist(), found.column.tolist(), strict=True)) == [(0, 0), (1, 1), (1, 0)]
    assert found.partner.tolist() == [1, -1, 0]
    assert found.alone.tolist() == [False, True, False]
