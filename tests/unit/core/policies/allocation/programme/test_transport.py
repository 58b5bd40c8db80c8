"""Agnostic jobs' time on the types that they can use: all of it, within the workers, by workers as far as that goes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.programme.transport import Kinds


@settings(max_examples=200)
@given(data=st.data(), types=st.integers(1, 5), rows=st.integers(1, 7), load=st.floats(0.2, 1.3))
def test_what_fits_is_dealt_out_within_the_workers(data: st.DataObject, types: int, rows: int, load: float) -> None:
    some = st.lists(st.booleans(), min_size=types, max_size=types).filter(any)
    can = np.array(data.draw(st.lists(some, min_size=rows, max_size=rows)))
    workers = np.array(data.draw(st.lists(st.integers(1, 40), min_size=types, max_size=types)), dtype=float)
    asked = np.array(data.draw(st.lists(st.integers(0, 30), min_size=rows, max_size=rows)), dtype=float)
    asked *= load * workers.sum() / max(asked.sum(), 1.0)
    kinds = Kinds(can, workers)
    if not _fits(can, workers, asked):
        return
    parts = kinds.parts(kinds.asked(asked))[kinds.of]
    assert not parts[~can].any()
    assert parts[asked > 0].sum(axis=1) == pytest.approx(1.0)
    assert not parts[kinds.asked(asked)[kinds.of] == 0].any()
    assert (asked @ parts <= workers * (1.0 + 1e-8)).all()
    for one in range(rows):
        alike = (can == can[one]).all(axis=1)
        assert (parts[alike] == parts[one]).all(), "jobs that can use the same types are on each for equally long"


def _fits(can: np.typing.NDArray[np.bool_], workers: Floats, asked: Floats) -> bool:
    """By a linear programme: whether nothing has to be left out, but for rounding."""
    rows, types = can.shape
    row, type_ = np.divmod(np.arange(rows * types), types)
    limits = [np.where(row == one, 1.0, 0.0) for one in range(rows)]
    limits += [np.where(type_ == one, 1.0, 0.0) for one in range(types)]
    worth = -np.where(can.ravel(), 1.0, 0.0)
    most = linprog(worth, A_ub=np.array(limits), b_ub=np.concatenate([asked, workers]))
    return bool(-most.fun >= asked.sum() * (1.0 - 1e-9))


def test_parts_go_by_workers_and_those_with_fewer_types_come_first() -> None:
    kinds = Kinds(np.array([[True, True], [True, False]]), np.array([6.0, 3.0]))
    by_workers = kinds.parts(kinds.asked(np.array([3.0, 2.0])))[kinds.of]
    assert by_workers == pytest.approx(np.array([[2 / 3, 1 / 3], [1.0, 0.0]]))
    full = kinds.parts(kinds.asked(np.array([4.0, 5.0])))[kinds.of]
    assert full == pytest.approx(np.array([[1 / 4, 3 / 4], [1.0, 0.0]]))


@pytest.mark.parametrize(
    ("can", "workers", "asked", "parts"),
    [
        ([[1, 1, 1]], [6, 3, 1], [5], [[0.6, 0.3, 0.1]]),
        ([[1, 1, 0]], [1, 3, 8], [2], [[0.25, 0.75, 0.0]]),
        ([[1, 1]], [3, 1], [0], [[0.0, 0.0]]),
        ([[1, 1], [0, 1]], [4, 4], [4, 4], [[1.0, 0.0], [0.0, 1.0]]),
        ([[1, 1], [0, 1]], [4, 4], [4, 3], [[0.75, 0.25], [0.0, 1.0]]),
        ([[1, 1], [0, 1]], [4, 4], [4, 2], [[0.5, 0.5], [0.0, 1.0]]),
        ([[1, 1], [0, 1]], [4, 4], [1, 2], [[0.5, 0.5], [0.0, 1.0]]),
        ([[1, 1, 1], [1, 1, 0], [1, 0, 0]], [4, 4, 4], [4, 4, 4], [[0, 0, 1], [0, 1, 0], [1, 0, 0]]),
        ([[1, 1, 0], [0, 1, 1]], [2, 2, 2], [3, 3], [[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]]),
    ],
)
def test_each_kind_is_on_its_types_by_their_workers_as_far_as_others_that_have_no_other_type_leave_room(
    can: list[list[int]], workers: list[float], asked: list[float], parts: list[list[float]]
) -> None:
    kinds = Kinds(np.array(can, dtype=bool), np.array(workers, dtype=float))
    found = kinds.parts(kinds.asked(np.array(asked, dtype=float)))[kinds.of]
    assert found == pytest.approx(np.array(parts, dtype=float), abs=1e-12)


def test_what_a_kind_asks_for_is_the_sum_of_its_jobs() -> None:
    kinds = Kinds(np.array([[True, False], [True, True], [True, False]]), np.array([1.0, 1.0]))
    asked = kinds.asked(np.array([0.25, 0.5, 0.125]))
    assert asked[kinds.of].tolist() == [0.375, 0.5, 0.375]
