"""The traces are what the paper tells of its own."""

from collections import Counter

import pytest

from synergy_simulator.workloads.tiresias_mix import GPUS, MODEL_BYTES, SKEW, production_like, scaled_down


def test_the_testbed_s_jobs_are_those_of_the_paper() -> None:
    jobs = scaled_down(seed=3)
    assert Counter(job.gpus for job in jobs) == GPUS
    assert set(Counter(job.model for job in jobs).values()) == {48}
    bins = Counter((job.gpus > 4, (job.duration_s or 0.0) >= 800.0) for job in jobs)
    shares = {kind: 100.0 * count / 480 for kind, count in bins.items()}
    table_3 = {(False, False): 63.5, (False, True): 12.5, (True, False): 16.5, (True, True): 7.5}
    for kind, share in table_3.items():
        assert shares[kind] == pytest.approx(share, abs=1.5), kind
    assert min(job.duration_s or 0.0 for job in jobs) >= 120.0
    assert max(job.duration_s or 0.0 for job in jobs) <= 7200.0
    assert jobs[-1].arrival_s / 479 == pytest.approx(30.0, rel=0.1)


def test_models_have_the_skew_of_table_6() -> None:
    assert MODEL_BYTES.keys() == SKEW.keys()
    assert SKEW["VGG19"] == pytest.approx(392.0 / 548.1, abs=1e-3)
    assert all(job.skew == SKEW[job.model or ""] for job in scaled_down(seed=1, jobs=50))


def test_the_production_like_trace_has_a_heavy_tail() -> None:
    jobs = production_like(4000, seed=2, jobs_per_hour=34.0)
    services = sorted(job.gpus * (job.duration_s or 0.0) for job in jobs)
    assert sum(service < 3600.0 for service in services) / len(services) > 0.6, "section 5.4.1"
    assert sum(services[-400:]) > 0.6 * sum(services), "a tenth of the jobs has most of the work"
    assert min(job.duration_s or 0.0 for job in jobs) >= 60.0
    assert jobs[-1].arrival_s / 3600.0 == pytest.approx(4000 / 34.0, rel=0.1)


def test_the_same_seed_gives_the_same_trace() -> None:
    assert production_like(20, seed=5, jobs_per_hour=9.0) == production_like(20, seed=5, jobs_per_hour=9.0)
    assert scaled_down(seed=5) != scaled_down(seed=6)
