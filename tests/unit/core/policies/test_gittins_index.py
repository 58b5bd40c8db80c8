"""The Gittins index against its definition (Tiresias, section 3.2.2, Pseudocode 1)."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.policies.discretised.gittins_index import ServiceDistribution

SERVICES = st.lists(st.integers(1, 10_000), min_size=1, max_size=30)


def _ratio(services: list[float], attained: float, quantum: float) -> float:
    """P(S - a <= D | S > a) / E[min(S - a, D) | S > a], word for word."""
    left = [service - attained for service in services if service > attained]
    if not left:
        return 0.0
    chance = sum(one <= quantum for one in left) / len(left)
    return chance / (sum(min(one, quantum) for one in left) / len(left))


def _supremum(services: list[float], attained: float) -> float:
    """Over every quantum at which something changes, one just below each, and one beyond all."""
    left = [service - attained for service in services if service > attained]
    quanta = [*left, *(one * 0.999 for one in left), 2 * max(left, default=1.0)]
    return max(_ratio(services, attained, quantum) for quantum in quanta)


@given(services=SERVICES, attained=st.floats(0, 11_000), quantum=st.floats(1e-3, 20_000))
def test_the_index_with_a_fixed_quantum_is_its_definition(services: list[int], attained: float, quantum: float) -> None:
    known = ServiceDistribution(services)
    assert known.index([attained], quantum)[0] == pytest.approx(_ratio(list(services), attained, quantum), rel=1e-9)
    assert known.index([attained])[0] == pytest.approx(_ratio(list(services), attained, 1e9), rel=1e-9)


@given(services=SERVICES, attained=st.lists(st.integers(0, 44_000).map(lambda n: n / 4), min_size=1, max_size=5))
def test_the_best_index_is_the_supremum_over_all_quanta(services: list[int], attained: list[float]) -> None:
    best = ServiceDistribution(services).best_index(attained)
    for one, index in zip(attained, best, strict=True):
        assert index == pytest.approx(_supremum(list(services), one), rel=1e-9)
        assert index * (1 + 1e-12) >= _ratio(list(services), one, 77.0)


@given(services=st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30), data=st.data())
def test_the_best_index_is_exact_just_before_a_sample(services: list[float], data: st.DataObject) -> None:
    """What is left there is far less than any of the numbers that it comes from."""
    near = st.builds(lambda one, part: one * (1 - part), st.sampled_from(services), st.floats(1e-13, 1e-6))
    attained = data.draw(st.lists(near | st.floats(0, 1.1e6), min_size=1, max_size=5))
    best = ServiceDistribution(services).best_index(attained)
    for one, index in zip(attained, best, strict=True):
        assert index == pytest.approx(_exact_supremum(services, one), rel=1e-9)


def _exact_supremum(services: list[float], attained: float) -> float:
    left = sorted(Fraction(service) - Fraction(attained) for service in services if service > attained)
    return max(
        (
            float(Fraction(sum(one <= quantum for one in left)) / sum(min(one, quantum) for one in left))
            for quantum in left
        ),
        default=0.0,
    )


def test_services_of_four_eight_and_twelve() -> None:
    """The distribution of the paper's figure 20: before 4 the chance to end soon grows, after it falls back."""
    known = ServiceDistribution([12, 4, 8])
    assert known.best_index([0, 2, 4, 6, 8, 12]) == pytest.approx([1 / 8, 1 / 6, 1 / 6, 1 / 4, 1 / 4, 0])
    assert known.best_index([3])[0] == pytest.approx(1 / 3)
    assert known.index([0, 2, 3.5], 4.0) == pytest.approx([1 / 12, 1 / 10, 1 / 8.5])


@pytest.mark.parametrize("services", [[], [0.0, 1.0], [-1.0], [math.inf], [math.nan]])
def test_a_distribution_without_sense_is_refused(services: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one sample, and all above 0 and finite"):
        ServiceDistribution(services)
