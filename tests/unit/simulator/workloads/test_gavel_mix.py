"""Jobs like those of Gavel's evaluation."""

import pytest

from synergy_simulator.workloads.gavel_mix import MULTIPLE, TYPES, built_in_speeds, drawn, steps_in

SPEEDS = built_in_speeds()


def _speed(model: str, gpu_type: str, gpus: int = 1) -> float:
    profile = SPEEDS.find(model, gpu_type, gpus)
    assert profile is not None
    return profile.steps_per_s[0][0]


def test_there_are_the_26_job_types_of_the_paper() -> None:
    assert len(SPEEDS.models) == 26
    assert {model.split(" (")[0] for model in SPEEDS.models} >= {"ResNet-50", "A3C", "LM", "CycleGAN"}


def test_a_v100_is_nearly_ten_times_a_k80_for_one_and_twice_for_another() -> None:
    assert _speed("ResNet-50 (batch size 128)", "V100") / _speed("ResNet-50 (batch size 128)", "K80") == pytest.approx(
        9.5
    )
    assert _speed("A3C", "v100") / _speed("A3C", "k80") == pytest.approx(2.0)
    for model in SPEEDS.models:
        fast, middle, slow = (_speed(model, gpu_type) for gpu_type in TYPES)
        assert fast > middle > slow


def test_more_gpus_are_faster_where_the_job_can_use_them() -> None:
    assert _speed("LM (batch size 80)", "P100", 2) == pytest.approx(1.7 * _speed("LM (batch size 80)", "P100"))
    assert SPEEDS.find("A3C", "V100", 2) is None
    assert SPEEDS.find("nobody", "V100", 1) is None


def test_traces_are_as_section_7_1_tells() -> None:
    jobs = drawn(2000, SPEEDS, seed=3, jobs_per_hour=5.0, gpu_mix=MULTIPLE, important=0.2)
    assert jobs == drawn(2000, SPEEDS, seed=3, jobs_per_hour=5.0, gpu_mix=MULTIPLE, important=0.2)
    assert jobs[-1].arrival_s / 3600 == pytest.approx(400, rel=0.1)
    assert sum(job.gpus == 1 for job in jobs) == pytest.approx(1400, rel=0.05)
    assert sum(job.gpus == 8 for job in jobs) == pytest.approx(100, rel=0.3)
    assert sum(job.weight == 5.0 for job in jobs) == pytest.approx(400, rel=0.15)
    hours = [(job.steps or 0) / _speed(job.model or "", "V100", job.gpus) / 3600 for job in jobs]
    assert min(hours) >= 0.5
    assert max(hours) <= 167
    assert sum(hour > 1000 / 60 for hour in hours) == pytest.approx(400, rel=0.15)


def test_another_load_changes_nothing_but_arrivals() -> None:
    slow, fast = (drawn(50, SPEEDS, seed=1, jobs_per_hour=load) for load in (1.0, 4.0))
    assert [(job.model, job.steps) for job in slow] == [(job.model, job.steps) for job in fast]
    assert [job.arrival_s for job in slow] == pytest.approx([4 * job.arrival_s for job in fast])
    assert all(job.arrival_s == 0 for job in drawn(5, SPEEDS, seed=1))


def test_models_can_be_chosen() -> None:
    assert {job.model for job in drawn(20, SPEEDS, seed=1, models=["A3C"])} == {"A3C"}
    assert steps_in(SPEEDS, "A3C", 1, 100.0) == 700
