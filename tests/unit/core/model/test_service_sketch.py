"""What is kept of finished jobs is bounded and close, and thresholds learned from it are the best there are."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synergy_core.model.service_sketch import LAST, MOST, WIDTH, bucket, counted, samples
from synergy_core.policies.discretised.gittins_index import ServiceDistribution
from synergy_core.policies.discretised.learned_thresholds import LOAD, learned_thresholds

SERVICES = st.lists(st.floats(1.0, 1e12), min_size=1, max_size=60)


@given(SERVICES)
def test_each_service_is_told_back_within_five_per_cent(services: list[float]) -> None:
    told = samples(counted({}, services))
    assert len(told) == len(services)
    for service, sample in zip(sorted(services), told, strict=True):
        assert sample == pytest.approx(service, rel=(WIDTH - 1) / (WIDTH + 1) + 1e-9)


@given(SERVICES, st.integers(0, 60))
def test_counting_in_parts_is_counting_at_once(services: list[float], cut: int) -> None:
    assert counted(counted({}, services[:cut]), services[cut:]) == counted({}, services)


def test_it_is_bounded_and_the_old_is_forgotten() -> None:
    chance = np.random.default_rng(1)
    counts = counted({}, [50.0] * MOST)
    assert sum(counts.values()) == MOST
    for _ in range(12):
        counts = counted(counts, (10 ** chance.uniform(-3, 20, MOST)).tolist())
        assert sum(counts.values()) <= MOST
        assert max(counts) <= LAST
    assert counts[bucket(50.0)] < MOST / 10
    assert len(samples(counts)) == 1000


def test_quantiles_stand_for_many_jobs() -> None:
    services = [10.0] * 900 + [1000.0] * 90 + [100_000.0] * 10
    told = samples(counted({}, services), most=100)
    assert [sum(low < one <= high for one in told) for low, high in ((0, 50), (50, 5000), (5000, 1e9))] == [90, 9, 1]


def test_the_index_by_the_sketch_is_close_to_the_index_by_the_jobs() -> None:
    services = np.random.default_rng(2).lognormal(7.0, 2.0, 900)
    exact, kept = ServiceDistribution(services.tolist()), ServiceDistribution(samples(counted({}, services.tolist())))
    attained = [0.0, 100.0, 1000.0, 5000.0]
    assert kept.index(attained, 3600.0) == pytest.approx(exact.index(attained, 3600.0), rel=0.1)


def mean_time(services: Sequence[float], thresholds: Sequence[float], load: float = LOAD) -> float:
    """Mean of Kleinrock's T(x) over the services, job by job as the formula has it."""
    rate, ends = load / float(np.mean(services)), [0.0, *thresholds, float("inf")]

    def below(end: float, power: int) -> float:
        return rate * float(np.mean([min(service, end) ** power for service in services]))

    times = []
    for service in services:
        queue = sum(end < service for end in thresholds)
        low, high = ends[queue], ends[queue + 1]
        times.append((below(high, 2) / (2.0 * (1.0 - below(high, 1))) + service) / (1.0 - below(low, 1)))
    return float(np.mean(times))


class TestThresholds:
    @settings(max_examples=40)
    @given(
        services=st.lists(st.integers(1, 50), min_size=4, max_size=12).filter(lambda all_: len(set(all_)) >= 4),
        queues=st.integers(2, 3),
        load=st.floats(0.1, 0.95),
    )
    def test_none_are_better(self, services: list[float], queues: int, load: float) -> None:
        learned = learned_thresholds(services, queues, load)
        assert learned is not None
        every = combinations(sorted(set(services))[:-1], queues - 1)
        best = min(mean_time(services, thresholds, load) for thresholds in every)
        assert mean_time(services, learned, load) == pytest.approx(best, rel=1e-9)

    def test_one_queue_is_pollaczek_and_khinchin(self) -> None:
        services = [1.0, 2.0, 6.0]
        rate = 0.5 / 3.0
        expected = 3.0 + rate * (41.0 / 3.0) / (2 * 0.5)
        assert mean_time(services, (), load=0.5) == pytest.approx(expected)

    def test_a_heavy_tail_is_cut_where_the_short_jobs_end(self) -> None:
        services = [60.0] * 600 + [3000.0] * 300 + [400_000.0] * 100
        (threshold,) = learned_thresholds(services, 2) or (0.0,)
        assert threshold in (60.0, 3000.0)
        assert mean_time(services, (threshold,)) < mean_time(services, ()) / 5

    def test_too_few_different_services_teach_nothing(self) -> None:
        assert learned_thresholds([5.0, 5.0, 7.0], 3) is None
        assert learned_thresholds([5.0], 2) is None
        assert learned_thresholds([], 2) is None

    @pytest.mark.parametrize(("queues", "load"), [(1, 0.9), (2, 0.0), (2, 1.0)])
    def test_what_makes_no_sense_is_refused(self, queues: int, load: float) -> None:
        with pytest.raises(ValueError, match="two queues at least"):
            learned_thresholds([1.0, 2.0], queues, load)


def test_a_job_that_needed_no_service_is_in_the_first_bucket() -> None:
    assert bucket(0.0) == bucket(1.0) == 0 < bucket(1.2)
