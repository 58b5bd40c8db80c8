"""What is known of pairs of kinds from one plan to the next."""

import numpy as np
import pytest

from synergy_core.colocation.kinds import known_pairs
from synergy_core.colocation.kinds.known_pairs import KnownPairs
from synergy_core.colocation.kinds.members import MemberTerms
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job

TERMS = MemberTerms(best=1.0, usual=1.0, demand=(1, 1), surface=None)


class _Plans:
    """Plans with kinds by number; what is found of two of them tells their numbers."""

    def __init__(self) -> None:
        self.known = KnownPairs()
        self.found: list[tuple[int, int]] = []
        """Of the last plan."""

    def plan(self, kinds: list[int], nodes: str = "nodes", predictions: str = "predictions") -> Floats:
        self.known.begin({"V100": nodes}, {"V100": predictions})
        asked = self.known.ask({kind: Job(name=str(kind), gpus=1) for kind in kinds})
        self.found = []

        def find(two: Ints) -> Floats:
            one, other = np.array(kinds)[two]
            self.found += zip(one.tolist(), other.tolist(), strict=True)
            return np.array([one + other / 1000, other + one / 1000])

        return self.known.kept(asked, "V100", find)


def _expected(kinds: list[int]) -> list[list[float]]:
    return [[one + other / 1000 for other in kinds] for one in kinds]


def test_only_pairs_of_which_nothing_is_known_are_found() -> None:
    plans = _Plans()
    assert plans.plan([1, 2]).tolist() == _expected([1, 2])
    assert sorted(plans.found) == [(1, 1), (1, 2), (2, 2)]
    assert plans.plan([3, 2, 1]).tolist() == _expected([3, 2, 1])
    assert sorted(plans.found) == [(3, 1), (3, 2), (3, 3)]
    assert plans.plan([2, 3]).tolist() == _expected([2, 3])
    assert plans.found == []


def test_what_neither_this_plan_nor_the_last_asked_for_is_forgotten() -> None:
    plans = _Plans()
    plans.plan([1, 2])
    plans.plan([2])
    plans.plan([1, 2])
    assert plans.found == []
    plans.plan([2])
    plans.plan([2])
    assert plans.plan([1, 2]).tolist() == _expected([1, 2])
    assert sorted(plans.found) == [(1, 1), (1, 2)]


@pytest.mark.parametrize("changed", [{"nodes": "others"}, {"predictions": "others"}])
def test_nothing_is_known_on_other_nodes_or_by_other_predictions(changed: dict[str, str]) -> None:
    plans = _Plans()
    plans.plan([1, 2])
    plans.plan([1, 2], **changed)
    assert len(plans.found) == 3


def test_all_kinds_of_a_plan_are_known_to_the_next_however_many_there_are() -> None:
    plans, kinds = _Plans(), list(range(600))
    plans.plan(kinds)
    assert len(plans.found) == 180_300
    assert plans.plan([*kinds, 600]).tolist() == _expected([*kinds, 600])
    assert len(plans.found) == 601


def test_of_more_kinds_than_are_kept_those_of_the_present_plan_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_pairs, "_MOST_KINDS", 4)
    plans = _Plans()
    plans.plan([1, 2, 3])
    plans.plan([4, 5, 6])
    plans.plan([4, 5, 6, 1])
    assert sorted(plans.found) == [(4, 1), (5, 1), (6, 1)]  # of the three of the first plan, one was kept
    plans.plan([1, 2, 3, 4, 5, 6])
    plans.plan([1, 2, 3, 4, 5, 6])
    assert plans.found == []


def test_what_a_kind_needs_is_known_as_long_as_the_nodes_are_the_same() -> None:
    known = KnownPairs()
    found = []
    for nodes, predictions in (("nodes", "some"), ("nodes", "others"), ("others", "others")):
        known.begin({"K80": "nodes", "V100": nodes}, {"V100": predictions})
        (kind,) = known.ask({"kind": Job(name="a", gpus=1)})
        found.append(sorted(kind.terms))
        kind.terms = dict.fromkeys(("K80", "V100"), TERMS)
    assert found == [[], ["K80", "V100"], ["K80"]]


@pytest.mark.parametrize(
    ("nodes", "predictions"),
    [
        ({"K80": 1, "V100": 2}, {"K80": 1, "V100": 1}),
        ({"K80": 1, "V100": 1}, {"K80": 1, "V100": 2}),
        ({"K80": 1}, {"K80": 1, "V100": 1}),
        ({"K80": 1, "V100": 1}, {"K80": 1}),
    ],
    ids=["nodes", "predictions", "no nodes", "no predictions"],
)
def test_what_changes_on_one_gpu_type_leaves_the_pairs_of_another(
    nodes: dict[str, int], predictions: dict[str, int]
) -> None:
    known, found = KnownPairs(), []
    both = {"K80": 1, "V100": 1}
    for plan in ((both, both), (nodes, predictions)):
        known.begin(*plan)
        asked = known.ask({kind: Job(name=kind, gpus=1) for kind in "ab"})
        for gpu_type in both:

            def find(two: Ints, gpu_type: str = gpu_type) -> Floats:
                found.append((gpu_type, two.shape[1]))
                return np.zeros(two.shape)

            known.kept(asked, gpu_type, find)
    assert found == [("K80", 3), ("V100", 3), ("V100", 3)]
