"""The timetable of a round, against its description: time laid end to end on a line, with marks at distances of 1."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.policies.rounds.turns import (
    ACCOUNTING_EVERY,
    GOLDEN,
    Line,
    Shares,
    due_shares,
    in_turn,
    is_accounting,
)

Mask = np.typing.NDArray[np.bool_]
Row = tuple[float, dict[int, float]]
"""GPUs of a job, and the parts of its time by type."""


def _shares(rows: list[Row], *, priority: list[float] | None = None, pressed: tuple[int, ...] = ()) -> Shares:
    flat = [(gpus, at, type_, share) for at, (gpus, parts) in enumerate(rows) for type_, share in parts.items()]
    count = len(flat)
    return Shares(
        share=np.array([share for *_, share in flat]),
        priority=np.array(priority if priority is not None else [1.0] * count),
        gpus=np.array([gpus for gpus, *_ in flat], dtype=float),
        type_=np.array([type_ for *_, type_, _ in flat], dtype=np.int64),
        row=np.array([at for _, at, *_ in flat], dtype=np.int64),
        pressed=np.isin(np.arange(count), pressed),
    )


def _due(rows: list[Row], mark: float) -> tuple[list[bool], list[bool]]:
    """Whether each share is due, and whether its job is."""
    row_is_due, is_due = due_shares(Line(_shares(rows)), mark)
    return is_due.tolist(), row_is_due.tolist()


ONE = st.sampled_from((0.1, 0.25, 0.4, 0.5, 0.75, 1.0))
MARKS = st.integers(0, 63).map(lambda n: n / 64)


@given(parts=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=8), mark=MARKS)
def test_as_many_jobs_are_due_as_their_time_adds_up_to_and_each_on_one_type(
    parts: list[list[int]], mark: float
) -> None:
    """Sixteenths, which are exact. A job that has all its time is due in every round, the others by the marks."""
    rows: list[Row] = [(1, {at: (part + 1) / 16 for at, part in enumerate(each)}) for each in parts]
    is_due, row_is_due = _due(rows, mark)
    of = [at for at, (_, each) in enumerate(rows) for _ in each]
    due = {at for at, flag in zip(of, row_is_due, strict=True) if flag}
    assert all(sum(flag for one, flag in zip(of, is_due, strict=True) if one == at) == (at in due) for at in set(of))
    whole = sum(Fraction(part + 1, 16) for each in parts for part in each)
    assert len(due) == floor(whole + Fraction(mark))


@given(times=st.lists(st.tuples(st.sampled_from((1, 2, 8)), st.integers(0, 2), st.integers(1, 15)), max_size=12),
       splits=st.integers(0, 3), mark=MARKS)  # fmt: skip
def test_jobs_of_one_size_and_type_lie_side_by_side_so_that_as_many_of_them_are_due_in_every_round(
    times: list[tuple[int, int, int]], splits: int, mark: float
) -> None:
    rows: list[Row] = []
    for at, (gpus, type_, sixteenths) in enumerate(times):
        rows.append((gpus, {type_: sixteenths / 16}))
        if at < splits:  # one that is split, between them
            rows.append((gpus, {type_: 0.5, (type_ + 1) % 3: 0.25}))
    if not rows:
        return
    is_due, _ = _due(rows, mark)
    of = [(gpus, type_, len(parts) > 1) for gpus, parts in rows for type_ in parts]
    for kind in {(gpus, type_) for gpus, type_, _ in times}:
        due = sum(flag for one, flag in zip(of, is_due, strict=True) if one == (*kind, False))
        whole = sum(Fraction(sixteenths, 16) for gpus, type_, sixteenths in times if (gpus, type_) == kind)
        assert floor(whole) <= due <= ceil(whole), kind


def test_a_job_that_is_split_is_counted_with_the_type_of_its_largest_share() -> None:
    """Two jobs for the most part on type 1 lie side by side, whatever comes first of their types."""
    rows: list[Row] = [(1, {0: 0.1, 1: 0.4}), (1, {0: 0.5}), (1, {1: 0.4, 2: 0.1}), (1, {2: 0.5})]
    for number in range(32):
        _, due = _due(rows, number / 32)
        assert due[0] + due[3] == 1, "both have half the time, and one of them is due"


@pytest.mark.parametrize(("time", "always"), [(1.0 - 1e-6, True), (1.0 - 1.01e-6, False), (1.0, True)])
def test_a_millionth_less_than_all_the_time_is_all_the_time(time: float, always: bool) -> None:
    rows: list[Row] = [(1, {0: time}), (1, {0: 0.5})]
    line = Line(_shares(rows))
    assert line.all_the_time.tolist() == [always, False]
    assert due_shares(line, 0.0)[0][0] == always
    assert line.total.tolist() == [time, 0.5]


def test_rounding_of_a_sum_neither_loses_a_round_nor_gives_one_twice() -> None:
    """Ten tenths come to a hair less than 1, three jobs of 0.7, 0.2 and 0.1 to a hair more or less."""
    for rows in ([(1, {0: 0.1})] * 10, [(1, {0: 0.7}), (1, {0: 0.2}), (1, {0: 0.1})]):
        for mark in (0.0, 0.3, 0.5, 0.9):
            assert sum(_due(rows, mark)[0]) == 1, mark  # type: ignore[arg-type]


def test_a_share_begins_where_the_one_before_it_ends() -> None:
    """A point of a job's time lies on one share only: the first from its beginning on, the last to its end."""
    row: Row = (1, {0: 0.25, 1: 0.5, 2: 0.25})
    first = next(mark for mark in (n / 256 for n in range(256)) if _due([row], mark)[0] == [True, False, False])
    seen = [tuple(_due([row], (first + n / 256) % 1.0)[0]) for n in range(256)]
    assert {sum(flags) for flags in seen} == {1}
    counts = [sum(flags[at] for flags in seen) for at in range(3)]
    assert counts == pytest.approx([64, 128, 64], abs=1)


def test_a_job_that_has_less_than_all_its_time_is_on_each_type_for_its_part_of_it() -> None:
    """A quarter of the time, four fifths of that on type 1."""
    row: Row = (1, {0: 0.05, 1: 0.2})
    seen = [tuple(_due([row], n / 1000)[0]) for n in range(1000)]
    assert sum(first for first, _ in seen) == pytest.approx(50, abs=2)
    assert sum(second for _, second in seen) == pytest.approx(200, abs=2)


def test_two_jobs_with_the_same_split_are_seldom_due_on_the_same_type() -> None:
    rows: list[Row] = [(1, {0: 0.5, 1: 0.5})] * 2
    both = sum(_due(rows, n / 100)[0][0] == _due(rows, n / 100)[0][2] for n in range(100))
    assert both <= 50


def test_the_order_is_pressed_due_same_job_rest_then_x_over_f_then_x() -> None:
    """Due: the second job on type 1, always; the third not at all in this round, the fourth neither."""
    rows: list[Row] = [(1, {0: 0.001}), (1, {0: 0.5, 1: 0.5}), (1, {0: 0.002}), (1, {0: 0.003})]
    shares = _shares(rows, priority=[1.0, 3.0, 2.0, 9.0, 9.0], pressed=(0,))
    order = in_turn(shares, 1).tolist()
    assert order[0] == 0
    assert set(order[1:3]) == {1, 2}
    assert order[3:] == [4, 3], "of the same X / f the larger X"
    settled = in_turn(shares, ACCOUNTING_EVERY).tolist()
    assert settled == [0, 4, 3, 1, 2]


def test_where_x_follows_the_due_come_by_that_share_and_the_others_by_all_their_time() -> None:
    rows: list[Row] = [(1, {0: 0.6, 1: 0.4}), (1, {0: 0.7}), (1, {0: 0.3, 1: 0.3}), (1, {0: 0.35, 1: 0.1})]
    shares = _shares(rows, priority=[0.0] * 7)
    for number in (0, 3, ACCOUNTING_EVERY):
        line = Line(shares)
        rows_due, dues = due_shares(line, number * GOLDEN % 1.0)
        order = in_turn(shares, number, follows=True).tolist()

        def key(
            at: int, line: Line = line, rows_due: Mask = rows_due, dues: Mask = dues
        ) -> tuple[bool, bool, bool, float, float]:
            due, row = bool(dues[at]), line.row[at]
            most = float(shares.share[at] if due else line.total[row])
            return (not due, not rows_due[at], not line.all_the_time[row], -most, -float(shares.share[at]))

        assert [key(at) for at in order] == sorted(key(at) for at in range(7))
        assert shares.row[order[0]] == 0, "the job that runs all the time"


def test_accounting_rounds_do_not_take_a_place_in_the_timetable() -> None:
    """Round 17 goes on where round 15 ended; where X follows there are none, and every round moves the marks."""
    assert [number for number in range(40) if is_accounting(number)] == [0, 16, 32]
    shares = _shares([(1, {0: 0.3}), (1, {0: 0.3}), (1, {0: 0.4})])

    def due(number: int, *, follows: bool = False) -> int:
        return int(in_turn(shares, number, follows=follows)[0])

    def by_mark(place: int) -> int:
        return int(np.flatnonzero(due_shares(Line(shares), place * GOLDEN % 1.0)[1])[0])

    assert [due(number) for number in range(1, 32) if number != 16] == [by_mark(place) for place in range(1, 31)]
    assert [due(number, follows=True) for number in range(32)] == [by_mark(place) for place in range(32)]


@pytest.mark.parametrize("before", [0.15, 0.5, 0.85, 0.95])
def test_so_it_is_wherever_its_time_begins_on_the_line(before: float) -> None:
    """Three tenths of the time, two thirds of that on type 1, behind another job."""
    rows: list[Row] = [(1, {0: before}), (1, {0: 0.1, 1: 0.2})]
    seen = [_due(rows, n / 1000)[0] for n in range(1000)]
    assert sum(flags[1] for flags in seen) == pytest.approx(100, abs=2)
    assert sum(flags[2] for flags in seen) == pytest.approx(200, abs=2)


def test_jobs_on_one_type_lie_side_by_side_before_those_that_are_split() -> None:
    """Two that have half of the time each: one of them is due whatever lies between them in the order of arrival."""
    rows: list[Row] = [(1, {0: 0.5}), (1, {0: 0.5, 1: 0.25}), (1, {0: 0.5})]
    for number in range(64):
        is_due, _ = _due(rows, number / 64)
        assert is_due[0] + is_due[3] == 1
