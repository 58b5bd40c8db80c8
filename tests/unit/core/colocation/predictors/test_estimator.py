"""The throughput estimator: completion, fingerprints, nearest references, correction."""

from itertools import product
from random import Random

import numpy as np
import pytest

from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.of_pairs import of_pairs
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.colocation.predictors.references import References
from synergy_core.model.measurement import Observation
from synergy_core.model.usage import Usage
from synergy_core.throughput.completion import completed

LIGHT, HEAVY = ("a", "b", "c"), ("x", "y", "z")


def _usage(model: str) -> Usage:
    return Usage(compute=0.0, bandwidth=0.0, model=model)


def _kept(own: str, partner: str) -> float:
    """Light models keep all beside each other, heavy ones halve each other, and press light ones a little."""
    return {(True, True): 1.0, (True, False): 0.8, (False, True): 0.9, (False, False): 0.5}[
        own in LIGHT, partner in LIGHT
    ]


def _estimator() -> Estimator:
    names = (*LIGHT, *HEAVY)
    return Estimator(References.of(PairTable({(one, two): _kept(one, two) for one in names for two in names}), names))


def _seen(model: str, partner: str, fraction: float) -> Observation:
    return Observation(_usage(model), (_usage(partner),), fraction)


def test_a_matrix_of_low_rank_is_found_again_from_half_of_its_entries() -> None:
    rng = np.random.default_rng(1)
    whole = 0.7 + 0.2 * rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    hidden = rng.random(whole.shape) < 0.5
    found = completed(np.where(hidden, np.nan, whole))
    by_means = np.nanmean(np.where(hidden, np.nan, whole), axis=0)
    assert np.abs(found - whole)[hidden].mean() < 0.5 * np.abs(by_means - whole)[hidden].mean()
    assert (found[~hidden] == whole[~hidden]).all()


def test_a_row_of_which_nothing_is_known_has_the_means() -> None:
    found = completed(np.array([[1.0, 0.5, np.nan], [0.8, 0.3, np.nan], [np.nan, np.nan, np.nan]]))
    assert found[2] == pytest.approx([0.9, 0.4, 0.65], abs=0.05)
    with pytest.raises(ValueError, match="no entry of the matrix is known"):
        completed(np.full((2, 2), np.nan))


def test_references_are_told_as_they_were_measured() -> None:
    one = _estimator()
    assert one.fractions([_usage("a"), _usage("x")]) == (0.8, 0.9)
    assert (one.fractions([_usage("a")]), one.fractions([_usage(name) for name in "abc"])) == ((1.0,), (0.0, 0.0, 0.0))


@pytest.mark.parametrize(("kept", "pressed", "like"), [(0.8, 0.9, LIGHT), (0.5, 0.5, HEAVY)])
def test_one_measurement_tells_which_references_a_new_model_is_like(
    kept: float, pressed: float, like: tuple[str, ...]
) -> None:
    one = _estimator().corrected([_seen("new", "x", kept), _seen("x", "new", pressed)])
    assert one.fingerprints["new"].nearest in like
    for partner in (*LIGHT, *HEAVY[1:]):
        assert one.kept("new", partner) == pytest.approx(_kept(like[0], partner), abs=1e-4)
        assert one.kept(partner, "new") == pytest.approx(_kept(partner, like[0]), abs=1e-4)


def test_two_new_models_are_told_by_those_that_stand_for_them() -> None:
    one = _estimator().corrected([_seen("new", "x", 0.8), _seen("other", "y", 0.5)])
    assert one.fractions([_usage("new"), _usage("other")]) == pytest.approx((0.8, 0.9), abs=0.01)


def test_what_is_measured_later_stands_in_place_of_the_estimate_and_changes_the_fingerprint() -> None:
    first = _estimator().corrected([_seen("new", "x", 0.8), _seen("x", "new", 0.9)])
    assert first.kept("new", "a") == pytest.approx(1.0, abs=1e-4)
    later = first.corrected([_seen("new", name, 0.5) for name in "xyz"] + [_seen("new", "a", 0.86)])
    assert later.kept("new", "a") == pytest.approx(0.86)
    assert later.kept("new", "x") == pytest.approx(0.65)  # the mean of both measurements
    assert later.fingerprints["new"].nearest in HEAVY
    assert later.kept("new", "b") == pytest.approx(0.9, abs=0.02)


def test_what_is_filled_in_beyond_0_or_1_is_told_as_these() -> None:
    told = {("a", "c"), ("b", "b"), ("c", "a"), ("d", "a"), ("d", "c")}
    lost = {("b", "a"), ("c", "b"), ("d", "b")}
    one = Estimator(References.of(PairTable(dict.fromkeys(told, 1.0) | dict.fromkeys(lost, 0.0)), "abcd"))
    assert one.references.fingerprints[0, 0] > 1.01
    assert one.references.fingerprints[0, 1] < -0.01
    usages = [_usage("a"), _usage("b")]
    assert (one.kept("a", "a"), one.kept("a", "b")) == (1.0, 0.0)
    assert of_pairs(one, usages)(np.array([[0, 0], [0, 1]])).tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_nothing_new_changes_nothing() -> None:
    one = _estimator()
    assert one.corrected([]) is one
    assert one.corrected([Observation(_usage("new"), (_usage("a"), _usage("b")), 0.5)]) is one
    assert one.corrected([Observation(_usage(""), (_usage("a"),), 0.5)]) is one


def test_what_a_model_keeps_beside_another_follows_from_what_is_corrected_of_the_two() -> None:
    rng = Random(5)
    names = ("a", "x", "new", "other", "third")
    one = _estimator()
    same = 0
    for _ in range(100):
        seen = [_seen(rng.choice(names), rng.choice(names), rng.random()) for _ in range(6)]
        sets = seen[:4], seen[:3] + seen[5:]
        told, kept = [one.corrections(some) for some in sets], [one.corrected(some) for some in sets]
        for own, partner in product(names, names):
            if all(told[0].get(name) == told[1].get(name) for name in (own, partner)):
                assert kept[0].kept(own, partner) == kept[1].kept(own, partner)
                same += 1
    assert same > 500


def test_a_measurement_corrects_as_few_models_as_can_be() -> None:
    """Beside a reference that is the new model alone."""
    one = _estimator().corrected([_seen("new", "a", 0.5)])
    assert one.corrections([]) == {}
    assert one.corrections([_seen("new", "", 0.4)]) == {}
    assert one.corrections([_seen("a", "later", 0.4), _seen("later", "a", 0.7)]).keys() == {"later"}
    assert one.corrections([_seen("new", "later", 0.4), _seen("later", "new", 0.7)]).keys() == {"later"}


def test_a_model_of_which_nothing_is_known_is_told_as_the_average() -> None:
    one = _estimator()
    assert one.kept("never", "a") == pytest.approx(0.95)
    assert one.kept("never", "seen") == pytest.approx(0.8)
    assert (one.kept("a", "never"), one.kept("z", "never")) == pytest.approx((0.9, 0.7))


def test_references_that_were_never_measured_are_refused() -> None:
    with pytest.raises(ValueError, match="no pair of the reference models was measured"):
        References.of(PairTable({("a", "b"): 1.0}), ("c", "d"))
