"""What happens when, told in seconds."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.simulator.simulation import flat, native, server, simulated, times, traced
from synergy_core.model.config import PriorityQueues
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import BY_COST
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.report.metrics import job_rows
from synergy_simulator.workloads.workload import build_workload


def test_a_gpu_that_falls_free_is_filled_at_once() -> None:
    assert times(simulated([traced("a", 0, 130), traced("b", 10, 50)])) == {"a": (0, 130), "b": (130, 180)}


def test_without_filling_it_waits_for_the_next_round() -> None:
    outcome = simulated([traced("a", 0, 130), traced("b", 10, 50)], fill=False)
    assert times(outcome) == {"a": (0, 130), "b": (200, 250)}


def test_an_arrival_at_the_beginning_of_a_round_is_in_that_round() -> None:
    assert times(simulated([traced("a", 200, 10)], fill=False)) == {"a": (200, 210)}


def test_a_shorter_job_takes_over_at_the_next_round_under_srtf() -> None:
    outcome = simulated([traced("long", 0, 500), traced("short", 30, 50)], policy="srtf")
    assert times(outcome) == {"long": (0, 550), "short": (100, 150)}
    (long, _) = outcome.runs
    assert (long.preemptions, long.held_s, long.gpu_s) == (1, 500, 500)


def test_a_preempted_job_pays_for_beginning_again_and_holds_its_gpu_meanwhile() -> None:
    jobs = [traced("long", 0, 500), traced("short", 30, 50)]
    outcome = simulated(jobs, policy="srtf", preemption_overhead_s=20)
    assert times(outcome)["long"] == (0, 570)
    assert outcome.runs[0].held_s == 520


def test_a_job_pays_once_for_its_first_start() -> None:
    jobs = [traced("long", 0, 500), traced("short", 30, 50)]
    assert times(simulated(jobs[:1], start_overhead_s=20)) == {"long": (0, 520)}
    outcome = simulated(jobs, policy="srtf", start_overhead_s=20, preemption_overhead_s=5)
    assert times(outcome) == {"long": (0, 595), "short": (100, 170)}
    (long, _) = outcome.runs
    assert (long.preemptions, long.held_s) == (1, 525)


def test_a_profile_run_is_no_start() -> None:
    outcome = simulated([traced("a", 0, 100)], profiling_s=40, start_overhead_s=20)
    assert times(outcome) == {"a": (40, 160)}


def test_las_shares_a_gpu_between_equal_jobs_in_turns() -> None:
    outcome = simulated([traced("a", 0, 300), traced("b", 0, 300)], policy="las")
    assert sorted(finish or 0 for _, finish in times(outcome).values()) == [500, 600]
    assert sum(run.preemptions for run in outcome.runs) == 4


def test_a_profile_run_holds_the_jobs_gpu_before_it_trains() -> None:
    outcome = simulated([traced("a", 0, 100), traced("b", 0, 100)], profiling_s=40)
    assert times(outcome) == {"a": (80, 180), "b": (180, 280)}
    assert [run.gpu_s for run in outcome.runs] == [140, 140]


def test_what_tune_gives_to_a_hungry_job_makes_it_faster(tmp_path: Path) -> None:
    jobs = [traced("h", 0, 600, model="hungry"), traced("f", 0, 600, model="frugal")]
    slow = simulated(jobs, server(2), native(tmp_path))
    fast = simulated(jobs, server(2), native(tmp_path), mechanism="tune")
    assert times(slow) == {"h": (0, 600), "f": (0, 600)}
    # 5 CPUs: 2/3 of the way from the 1 step/s of 3 CPUs to the 2 of 6
    assert times(fast)["h"] == (0, pytest.approx(600 / (1 + 2 / 3)))
    assert times(fast)["f"] == (0, 600)


def test_until_measured_done_ends_with_the_last_measured_job() -> None:
    jobs = [traced(f"j{index}", 10.0 * index, 100) for index in range(6)]
    outcome = simulated(jobs, measure=(1, 3), until_measured_done=True)
    assert {run.task.name for run in outcome.runs if run.finish_s is not None} == {"j0", "j1", "j2"}
    assert outcome.usage.until == 300


def test_jobs_of_several_gpus_wait_until_there_are_enough() -> None:
    jobs = [traced("a", 0, 100), traced("b", 1, 100, gpus=2), traced("c", 2, 30)]
    outcome = simulated(jobs, server(2))
    # c slips in beside a between rounds; from the second round on b, which came first, has both GPUs
    assert times(outcome) == {"a": (0, 100), "b": (100, 200), "c": (2, 32)}


@st.composite
def _traces(draw: st.DrawFn) -> list[TraceJob]:
    count = draw(st.integers(2, 14))
    arrivals = sorted(draw(st.lists(st.integers(0, 900), min_size=count, max_size=count)))
    return [
        traced(
            f"j{index:02}",
            float(arrival),
            draw(st.integers(1, 900)),
            gpus=draw(st.sampled_from((1, 1, 1, 2, 4))),
            model=draw(st.sampled_from(("hungry", "frugal"))),
        )
        for index, arrival in enumerate(arrivals)
    ]


_options = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(sorted(POLICIES.keys() - BY_COST)),  # the cluster has no prices
        "mechanism": st.sampled_from(("proportional", "tune", "opt", "greedy", "drf-tune", "tetris")),
        "fill": st.booleans(),
        "start_overhead_s": st.sampled_from((0.0, 20.0)),
        "preemption_overhead_s": st.sampled_from((0.0, 30.0)),
        "queues": st.builds(
            PriorityQueues,
            thresholds_gpu_s=st.sampled_from(((), (100.0,), (100.0, 400.0))),
            promote_knob=st.sampled_from((None, 1.0, 3.0)),
            service_gpu_s=st.sampled_from(((), (50.0, 200.0, 800.0))),
        ),
    }
)


@settings(max_examples=25)
@given(_traces(), _options)
def test_passing_over_rounds_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[TraceJob], options: dict[str, Any]
) -> None:
    workload = build_workload(jobs, native(tmp_path_factory.mktemp("profiles")), server(2, nodes=2, cost_per_hour=1.0))
    jumping = simulate(workload, Options.of(**options, round_s=50.0))
    looking = simulate(workload, Options.of(**options, round_s=50.0, reuse_plans=False))
    assert len(jumping.plan_s) <= len(looking.plan_s)
    for mine, other in zip(job_rows(jumping), job_rows(looking), strict=True):
        assert mine.job_id == other.job_id
        # the same work is added up in other pieces: the last digit may differ
        assert (mine.start_s, mine.finish_s) == pytest.approx((other.start_s, other.finish_s))
        assert mine.preemptions == other.preemptions
    for run in jumping.runs:
        # GPUs are never shared, and work is neither lost nor made up
        assert run.gpu_s == pytest.approx(run.held_s * run.task.gpus)
        assert run.left == pytest.approx(0, abs=1e-6)
    assert jumping.usage.gpu_s == pytest.approx(sum(run.gpu_s for run in jumping.runs))


def test_progress_is_entered_round_by_round_though_nothing_else_happens() -> None:
    """Finish-time fairness values progress at the number of jobs there were, so no round is passed over."""
    jobs = [traced("a", 221.0, 476, gpus=4), traced("b", 476.0, 221, gpus=4)]
    policy: dict[str, Any] = {"policy": "finish-time-fairness", "fill": False}
    overheads = {"start_overhead_s": 20.0, "preemption_overhead_s": 30.0}
    jumping, looking = (
        simulate(
            build_workload(jobs, flat(), server(2, nodes=2)),
            Options.of(**policy, **overheads, round_s=50.0, reuse_plans=reuse),
        )
        for reuse in (True, False)
    )
    assert times(jumping) == times(looking)
    assert [run.preemptions for run in jumping.runs] == [run.preemptions for run in looking.runs]


def test_a_quiet_stretch_costs_no_plans() -> None:
    jobs = [traced("a", 0, 1_000_000), traced("b", 10, 1_000_000)]
    outcome = simulated(jobs)
    assert outcome.rounds == 20_000
    assert len(outcome.plan_s) < 10


def test_the_same_input_gives_the_same_outcome() -> None:
    jobs = [traced(f"j{index}", 7.0 * index, 100 + 13 * index % 57) for index in range(20)]
    first, second = (simulated(jobs, server(2, nodes=2), policy="las", mechanism="tune") for _ in range(2))
    assert job_rows(first) == job_rows(second)


def test_each_model_has_its_own_speed() -> None:
    outcome = simulated([traced("a", 0, 100, model="fast"), traced("b", 0, 100)], server(2), flat(fast=4.0))
    assert times(outcome) == {"a": (0, 25), "b": (0, 100)}
