"""Fingerprints and the choice of references, against a calculation entry by entry."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.colocation.predictors.fingerprint import (
    FILLED_IN_NOISE,
    KNOWN_WELL,
    NOISE,
    Kept,
    fingerprint,
    next_reference,
)
from synergy_core.colocation.predictors.references import References
from synergy_core.throughput.completion import completed

_FRACTIONS = st.integers(0, 20).map(lambda number: number / 20)


@st.composite
def tables(draw: st.DrawFn) -> References:
    """Up to five references, all measured beside each other."""
    size = draw(st.integers(2, 5))
    rows = draw(st.lists(st.lists(_FRACTIONS, min_size=size, max_size=size), min_size=size, max_size=size))
    kept = np.array(rows, dtype=float)
    for row, column in draw(st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=3)):
        kept[row, column] = np.nan
    return References(tuple(f"r{index}" for index in range(size)), kept)


@st.composite
def measured_in(draw: st.DrawFn, references: References) -> dict[str, Kept]:
    names = draw(st.lists(st.sampled_from(references.models), unique=True, max_size=len(references.models) - 1))
    return {name: (draw(_FRACTIONS), draw(_FRACTIONS)) for name in names}


@functools.lru_cache(maxsize=8)
def _entries(references: References) -> list[list[float]]:
    """By completion, which has tests of its own."""
    rows: list[list[float]] = completed(np.hstack([references.kept, references.kept.T])).tolist()
    return rows


def _log_chance(references: References, row: int, own: float, theirs: float, at: int) -> float:
    """Of two measured entries if the model is the reference of the row."""
    entries, kept, total = _entries(references)[row], references.kept, 0.0
    for value, column, hole in (
        (own, at, math.isnan(kept[row, at])),
        (theirs, len(references.models) + at, math.isnan(kept[at, row])),
    ):
        noise = FILLED_IN_NOISE if hole else NOISE
        total += -((value - entries[column]) ** 2) / (2 * noise**2) - math.log(noise)
    return total


def _probabilities(references: References, measured: dict[str, Kept]) -> list[float]:
    likely = []
    for row in range(len(references.models)):
        seen = [(own, theirs, references.models.index(name)) for name, (own, theirs) in measured.items()]
        likely.append(sum(_log_chance(references, row, *one) for one in seen))
    whole = [math.exp(one - max(likely)) for one in likely]
    return [one / sum(whole) for one in whole]


def _variance(probabilities: list[float], entries: list[list[float]]) -> float:
    total = 0.0
    for column in zip(*entries, strict=True):
        mean = sum(p * value for p, value in zip(probabilities, column, strict=True))
        total += sum(p * (value - mean) ** 2 for p, value in zip(probabilities, column, strict=True))
    return total / len(entries[0])


def _left(references: References, measured: dict[str, Kept], name: str) -> float:
    """The variance left on average if the model is each reference in turn, tried one by one."""
    entries, at, size = _entries(references), references.models.index(name), len(references.models)
    total = 0.0
    for true, probability in enumerate(_probabilities(references, measured)):
        told = {**measured, name: (entries[true][at], entries[true][size + at])}
        total += probability * _variance(_probabilities(references, told), _entries(references))
    return total


@given(st.data())
def test_weights_are_the_probabilities_of_each_reference(data: st.DataObject) -> None:
    references = data.draw(tables())
    measured = data.draw(measured_in(references))
    found = fingerprint(references, measured)
    wanted = _probabilities(references, measured)
    assert found.weights == pytest.approx(wanted, abs=1e-9)
    assert wanted[references.models.index(found.nearest)] == pytest.approx(max(wanted))
    assert found.uncertainty == pytest.approx(math.sqrt(_variance(wanted, _entries(references))), abs=1e-7)
    assert max(wanted) - 1e-9 <= found.confidence <= 1.0 + 1e-9


@given(st.data())
def test_the_next_reference_leaves_the_least_variance_and_none_is_asked_for_in_vain(data: st.DataObject) -> None:
    references = data.draw(tables())
    measured = data.draw(measured_in(references))
    available = data.draw(st.sets(st.sampled_from(references.models)))
    most = data.draw(st.integers(0, 5))
    chosen = next_reference(references, measured, available, most=most)
    left = {name: _left(references, measured, name) for name in available - set(measured)}
    now = _variance(_probabilities(references, measured), _entries(references))
    if not left or len(measured) >= most:
        assert chosen is None
    elif chosen is None:
        assert measured
        assert math.sqrt(now) < KNOWN_WELL + 1e-9 or min(left.values()) > 0.98 * now - 1e-9
    else:
        assert left[chosen] == pytest.approx(min(left.values()), abs=1e-9)
        assert not measured or math.sqrt(now) > KNOWN_WELL - 1e-9


def test_of_twins_one_is_as_good_as_the_other_and_they_count_as_one() -> None:
    twins = References(("a", "b", "c"), np.array([[1.0, 1.0, 0.9], [1.0, 1.0, 0.9], [0.5, 0.5, 0.4]]))
    found = fingerprint(twins, {"a": (1.0, 1.0)})
    assert found.nearest == "a"
    assert found.confidence > 0.99
    assert found.weights[0] == found.weights[1]
    assert next_reference(twins, {"a": (1.0, 1.0)}, {"b", "c"}, most=9) is None, "a and b are known to be alike"


def test_without_a_table_every_reference_is_measured_in_order_up_to_the_limit() -> None:
    assert next_reference(None, {}, {"b", "a"}, most=2) == "a"
    assert next_reference(None, {"a": (1.0, 1.0)}, {"b", "a"}, most=2) == "b"
    assert next_reference(None, {"a": (1.0, 1.0), "b": (1.0, 1.0)}, {"a", "b", "c"}, most=2) is None


def test_references_that_nothing_is_known_of_come_last() -> None:
    table = References(("m", "n"), np.array([[1.0, 0.5], [0.4, 0.2]]))
    assert next_reference(table, {}, {"a", "n"}, most=3) == "n"
    assert next_reference(table, {"n": (0.8, 0.7)}, {"a", "n"}, most=3) == "a"
    assert fingerprint(table, {"a": (0.1, 0.1)}).weights == pytest.approx([0.5, 0.5])


def test_holes_of_the_table_are_filled_in() -> None:
    table = References(("m", "n"), np.array([[1.0, np.nan], [0.4, 0.2]]))
    assert not np.isnan(fingerprint(table, {"m": (1.0, 1.0)}).weights).any()
    assert fingerprint(table, {"m": (0.4, np.nan)}).nearest == "n"
