"""Algorithm 1 of Gavel's section 5 on small allocation matrices: who gets which type, who moves up, who shares."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from support.planner.allocation import problem, with_placements
from support.planner.planning import job
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.queue import Queue
from synergy_core.policies.rounds.algorithm_1 import RoundShares, algorithm_1
from synergy_core.policies.rounds.entries import Time, entries_of

ROUND_S = 300.0


class _Room:
    """So many GPUs of each type can be shared."""

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus

    def rows(self, *_: Any) -> tuple[Ints, Floats]:
        raise AssertionError("not asked here")

    def gpus(self, jobs: Sequence[Job], gpu_type: str) -> int:
        del jobs, gpu_type
        return self._gpus


def _served(
    made: Problem,
    x: Sequence[Sequence[float]],
    free: Mapping[str, int],
    *,
    order: Sequence[tuple[int, int]] | None = None,
    fills: bool = False,
    room: int | None = None,
    now: float = ROUND_S,
    accounting: bool = False,
    names: Sequence[str] = (),
) -> tuple[dict[int, int], tuple[tuple[str, tuple[str, ...]], ...]]:
    """What Algorithm 1 gives; `order`: (job, column) of each entry, in the order in which they are served."""
    jobs = [job(names[at] if names else name, int(made.scale[at])) for at, name in enumerate(made.jobs)]
    queue = Queue(now, tuple(jobs), lambda _: 1.0, round_s=ROUND_S, pairs=None if room is None else _Room(room))
    time = Time(jobs, made, np.array(x))
    entries = entries_of(queue, jobs, made, time, np.zeros(len(jobs), dtype=bool), accounting=accounting)
    there = list(zip(entries.job.tolist(), entries.column.tolist(), strict=True))
    places = [there.index(one) for one in order] if order is not None else range(len(there))
    found = RoundShares(made, entries, np.array(places, dtype=np.int64), (), "")
    return algorithm_1(found, jobs, free, queue, fills=fills)


def test_a_job_that_does_not_fit_is_passed_over_and_one_that_takes_exactly_what_is_left_is_not() -> None:
    made = problem([[1.0]] * 4, [4], scale=[2, 3, 2, 1])
    column, together = _served(made, [[0.5]] * 4, {"t0": 4})
    assert column == {0: 0, 2: 0}
    assert together == ()


def test_a_job_gets_one_type_and_its_other_shares_are_dropped() -> None:
    made = problem([[1.0, 1.0]] * 2, [1, 1])
    order = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert _served(made, [[0.5, 0.5]] * 2, {"t0": 1, "t1": 1}, order=order)[0] == {0: 0, 1: 1}


def test_a_job_moves_up_to_a_faster_type_and_what_it_leaves_goes_to_the_next_in_the_same_round() -> None:
    """The first is served on the slow type; the second has time on that type only."""
    made = problem([[1.0, 2.0], [1.0, 0.0]], [1, 1])
    order = [(0, 0), (1, 0), (0, 1)]
    given = {"made": made, "x": [[0.5, 0.5], [0.5, 0.0]], "free": {"t0": 1, "t1": 1}, "order": order}
    assert _served(**given)[0] == {0: 0}
    assert _served(**given, fills=True)[0] == {0: 1, 1: 0}
    waiting_last = [(0, 0), (0, 1), (1, 0)]
    assert _served(**{**given, "order": waiting_last}, fills=True)[0] == {0: 1, 1: 0}


@pytest.mark.parametrize(
    ("speeds", "scale", "idle", "column"),
    [
        ((1.0, 2.0), 2, 2, 1),  # exactly enough
        ((1.0, 2.0), 2, 1, 0),  # too few
        ((2.0, 2.0), 1, 5, 0),  # not faster
        ((2.0, 1.0), 1, 5, 0),  # slower
    ],
)
def test_a_job_moves_up_only_to_enough_idle_gpus_of_a_faster_type(
    speeds: tuple[float, float], scale: int, idle: int, column: int
) -> None:
    made = problem([speeds], [2, 5], scale=[scale])
    free = {"t0": scale, "t1": idle}
    assert _served(made, [[0.5, 0.5]], free, order=[(0, 0), (0, 1)], fills=True)[0] == {0: column}


def test_jobs_move_up_as_far_as_the_idle_gpus_go_in_the_order_of_their_shares() -> None:
    """A job for which too few are idle does not stop those behind it."""
    made = problem([[1.0, 2.0]] * 3, [6, 2], scale=[3, 1, 1])
    order = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    x = [[0.5, 0.5]] * 3
    assert _served(made, x, {"t0": 6, "t1": 1}, order=order, fills=True)[0] == {0: 0, 1: 1, 2: 0}
    assert _served(made, x, {"t0": 6, "t1": 2}, order=order, fills=True)[0] == {0: 0, 1: 1, 2: 1}


def test_no_job_moves_in_order_to_be_spread_on_the_type_that_it_has() -> None:
    made = with_placements(problem([[1.0, 1.0]], [2, 2], scale=[2]), 0)
    faster_spread = replace(made, throughputs=np.array([[1.0, 1.0, 1.3, 0.0]]))
    x = [[0.5, 0.0, 0.5, 0.0]]
    given, _ = _served(faster_spread, x, {"t0": 4, "t1": 2}, order=[(0, 0), (0, 2)], fills=True)
    assert given == {0: 0}


def _pairs(jobs: int, pairs: Sequence[tuple[int, int]], *, workers: int = 1) -> Problem:
    rows = [[[0.9, 0.9], [0.9, 0.9]]] * len(pairs)
    return problem([[1.0, 2.0]] * jobs, [workers, workers], pairs=pairs, pair_throughputs=rows)


def test_a_pair_takes_one_gpu_and_neither_of_the_two_moves_up() -> None:
    made = _pairs(2, [(0, 1)])
    x = [[0.0, 0.1], [0.0, 0.1], [0.5, 0.0]]
    order = [(0, 0), (0, 1), (1, 1)]
    column, together = _served(made, x, {"t0": 1, "t1": 2}, order=order, fills=True, room=1)
    assert column == {0: 0, 1: 0}
    assert together == (("t0", ("j0", "j1")),)


@pytest.mark.parametrize(("room", "shared"), [(0, 0), (1, 1), (2, 2)])
def test_as_many_pairs_share_as_there_are_gpus_that_can_be_shared(room: int, shared: int) -> None:
    """Those that cannot leave the GPU to the next: the last job runs alone."""
    made = _pairs(5, [(0, 1), (2, 3)], workers=3)
    x = [[0.0, 0.0]] * 4 + [[0.5, 0.0]] + [[0.5, 0.0]] * 2
    column, together = _served(made, x, {"t0": 3, "t1": 0}, room=room)
    assert len(together) == shared
    assert column[4] == 0
    assert len(column) == 1 + 2 * shared


def test_without_pairs_in_the_queue_nobody_shares() -> None:
    assert _served(_pairs(2, [(0, 1)]), [[0.0, 0.0]] * 2 + [[1.0, 0.0]], {"t0": 1, "t1": 1}) == ({}, ())


@pytest.mark.parametrize("accounting", [False, True])
def test_a_partner_that_has_a_gpu_already_does_not_get_a_second_one(accounting: bool) -> None:
    """The first job runs alone on the slow type; the pair's time on the other type waits for another round."""
    made = _pairs(2, [(0, 1)])
    x = [[0.5, 0.0], [0.0, 0.0], [0.0, 0.5]]
    order = [(0, 0), (1, 1) if accounting else (0, 1)]
    column, together = _served(made, x, {"t0": 1, "t1": 1}, order=order, room=1, accounting=accounting)
    assert (column, together) == ({0: 0}, ())


def test_the_first_job_can_be_the_partner_that_another_chooses() -> None:
    made = _pairs(2, [(0, 1)])
    x = [[0.0, 0.0], [0.0, 0.0], [0.5, 0.0]]
    column, together = _served(made, x, {"t0": 1, "t1": 0}, order=[(1, 0)], room=1, accounting=True)
    assert column == {0: 0, 1: 0}
    assert together == (("t0", ("j1", "j0")),)


WAYS = {"j1": 0.5, "j2": 0.2, None: 0.1}
"""How the first job spends its time on a type: with two others in turn, and alone."""


def _partner(number: float, name: str = "j0") -> str | None:
    """The partner of the first job in a round."""
    made = _pairs(3, [(0, 1), (0, 2)])
    x = [[0.1, 0.0], [0.0, 0.0], [0.0, 0.0], [0.5, 0.0], [0.2, 0.0]]
    names = [name, "j1", "j2"]
    _, together = _served(
        made, x, {"t0": 1, "t1": 0}, order=[(0, 0)], room=1, accounting=True, now=number * ROUND_S, names=names
    )
    return together[0][1][1] if together else None


@pytest.mark.parametrize("name", ["j0", "a", "resnet-50"])
def test_over_the_rounds_a_job_has_each_partner_as_often_as_its_shares_say(name: str) -> None:
    had: Counter[str | None] = Counter()
    for number in range(144):
        had[_partner(number, name)] += 1
        for partner, share in WAYS.items():
            assert had[partner] == pytest.approx((number + 1) * share / 0.8, abs=2.0)


def test_the_partner_stays_the_same_throughout_a_round_and_jobs_do_not_change_theirs_together() -> None:
    assert all(_partner(number) == _partner(number + 0.9) for number in range(30))
    turns = {name: tuple(_partner(number, name) for number in range(12)) for name in ("j0", "a", "b", "c")}
    assert len(set(turns.values())) >= 3
    assert crc32(b"j0") != crc32(b"a")
