"""What is drawn for a soak."""

from itertools import islice

import pytest

from soak.size import GPU_MIX, MEAN_GPUS, Kind, Size, disturbances, jobs

HOUR = Size(gpus=10_000, minutes=60)
SMALL = Size(gpus=200, minutes=2)


def test_an_hour_of_ten_thousand_gpus() -> None:
    assert (HOUR.nodes, HOUR.asked) == (1250, 9000)
    mean = sum(job.gpus for job in islice(jobs(HOUR), 20_000)) / 20_000
    assert mean == pytest.approx(MEAN_GPUS, rel=0.03)
    at_a_time = HOUR.asked / mean
    assert at_a_time == pytest.approx(4950, rel=0.03)
    assert at_a_time / HOUR.life_s == pytest.approx(1.5, rel=0.03)  # jobs a second


def test_jobs_of_a_small_cluster_train_for_a_third_of_the_soak_and_twenty_minutes_at_most() -> None:
    assert Size(gpus=80, minutes=2).life_s == 40.0
    assert Size(gpus=200, minutes=600).life_s == 1200.0


def test_jobs_are_the_same_for_the_same_seed_and_have_the_sizes_of_the_mix() -> None:
    drawn = list(islice(jobs(SMALL), 2000))
    assert drawn == list(islice(jobs(SMALL), 2000))
    assert drawn != list(islice(jobs(Size(gpus=200, minutes=2, seed=2)), 2000))
    assert {job.gpus for job in drawn} == set(GPU_MIX)
    assert min(job.seconds for job in drawn) >= 0.1 * SMALL.life_s
    assert sum(job.seconds for job in drawn) / 2000 == pytest.approx(SMALL.life_s, rel=0.1)


def test_a_given_life_counts() -> None:
    assert Size(gpus=8, minutes=1, mean_life_s=7.0).life_s == 7.0


@pytest.mark.parametrize("size", [HOUR, SMALL], ids=["hour", "small"])
def test_disturbances_come_one_after_another_and_end_before_the_soak(size: Size) -> None:
    drawn = disturbances(size)
    assert drawn == disturbances(size)
    assert [one.at for one in drawn] == sorted(one.at for one in drawn)
    assert all(0 < one.at < 0.9 * size.seconds for one in drawn)
    for one in drawn:
        assert (one.kind is Kind.NODES_FAILED) == bool(one.nodes)
        assert all(0 <= node < size.nodes for node in one.nodes)


def test_in_an_hour_everything_happens_once_at_least() -> None:
    assert {one.kind for one in disturbances(HOUR)} == set(Kind)
