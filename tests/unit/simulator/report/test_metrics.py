"""The figures, worked out by hand."""

import pytest

from support.simulator.simulation import server, simulated, traced
from synergy_simulator.report.metrics import job_rows, metrics_of


def test_figures_of_two_jobs_one_after_the_other() -> None:
    jobs = [traced("a", 0, 100, slo_s=100.0), traced("b", 0, 300, slo_s=300.0)]
    metrics = metrics_of(simulated(jobs, server(1, cost_per_hour=36.0)))
    assert (metrics.jobs, metrics.measured) == (2, 2)
    assert metrics.avg_jct_s == metrics.median_jct_s == 250
    assert metrics.p95_jct_s == pytest.approx(100 + 0.95 * 300)
    assert metrics.makespan_s == 400
    assert metrics.avg_queue_s == 50
    assert metrics.gpu_utilization == metrics.cpu_utilization == metrics.memory_utilization == pytest.approx(1.0)
    assert metrics.cost == pytest.approx(400 * 36 / 3600)
    assert metrics.slo_violations == 1
    assert metrics.rounds == 4


def test_fairness_is_against_an_equal_part_of_the_cluster_meanwhile() -> None:
    metrics = metrics_of(simulated([traced("a", 0, 100), traced("b", 0, 300)]))
    # a: two jobs for one GPU while it is there: 100 / (100 x 2); b: two for 100 s, one for 300 s: 400 / (300 x 1.25)
    assert metrics.avg_ftf == pytest.approx((0.5 + 400 / 375) / 2)


def test_an_empty_cluster_counts_as_half_used_when_half_is() -> None:
    metrics = metrics_of(simulated([traced("a", 0, 100)], server(2)))
    assert metrics.gpu_utilization == pytest.approx(0.5)


def test_only_measured_jobs_are_in_the_figures() -> None:
    jobs = [traced("a", 0, 100), traced("b", 0, 100), traced("c", 0, 100)]
    metrics = metrics_of(simulated(jobs, measure=(1, 2)))
    assert (metrics.jobs, metrics.measured, metrics.avg_jct_s, metrics.makespan_s) == (3, 1, 200, 300)


def test_rows_say_when_a_job_held_gpus() -> None:
    outcome = simulated([traced("long", 0, 500), traced("short", 30, 50)], policy="srtf")
    long, short = job_rows(outcome)
    assert (long.jct_s, long.queue_s, long.gpu_s, long.preemptions) == (550, 50, 500, 1)
    assert (short.start_s, short.finish_s, short.queue_s) == (100, 150, 70)
