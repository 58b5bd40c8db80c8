"""The examples that the Gavel paper works out."""

import numpy as np
import pytest

from support.planner.allocation import SECTION_4_1, assert_valid, problem
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import effective_throughput, workers_used


def test_section_4_1_max_min_fairness_on_a_v100_and_a_k80() -> None:
    made = problem(SECTION_4_1, [1, 1])
    found = solve(made, "max-min-fairness")
    assert found.x == pytest.approx(np.array([[0.4545, 0.0], [0.4545, 0.0909], [0.0909, 0.9091]]), abs=1e-4)
    assert found.objective == pytest.approx(8 / 11, abs=1e-6)
    isolated = effective_throughput(made, solve(made, "isolated").x)
    assert effective_throughput(made, found.x) / isolated == pytest.approx(np.full(3, 12 / 11))  # "about 10 % higher"


def test_section_4_3_water_filling_gives_the_others_full_gpus_once_the_heavy_job_has_its_own() -> None:
    made = problem([[1.0]] * 4, [4], weight=[3, 1, 1, 1])
    filled = solve(made, "max-min-fairness-water-filling")
    assert filled.x[:, 0] == pytest.approx(np.ones(4))
    assert filled.objective == pytest.approx(1 / 3)  # job 1 at 1.0 and weight 3 is what holds the first level


def _figure_6(workers: float, weight: tuple[float, ...] = (1, 1, 1, 1, 1)) -> list[float]:
    """Product team: jobs 0 to 2, fairness; research team: jobs 3 and 4, FIFO; equal weights, one kind of GPU."""
    teams = (Tenant("product", 1.0, "fairness"), Tenant("research", 1.0, "fifo"))
    made = problem(
        [[1.0]] * 5, [workers], tenant=[0, 0, 0, 1, 1], tenants=teams, weight=weight, arrival=[0, 0, 0, 0, 1]
    )
    found = solve(made, "hierarchical")
    assert_valid(made, found.x)
    return [float(speed) for speed in effective_throughput(made, found.x)]


def test_figure_6_half_for_each_team_shared_in_one_and_in_turn_in_the_other() -> None:
    assert _figure_6(1) == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2, 0.0])


def test_figure_6_the_next_job_in_line_gets_the_weight_of_a_full_one() -> None:
    assert _figure_6(3) == pytest.approx([0.5, 0.5, 0.5, 1.0, 0.5])


def test_figure_6_a_team_that_has_all_it_could_have_leaves_the_rest_to_the_other() -> None:
    assert _figure_6(4.4) == pytest.approx([0.8, 0.8, 0.8, 1.0, 1.0])


def test_figure_6_the_weight_of_a_bottlenecked_job_goes_to_its_team() -> None:
    """Job 0 has twice the weight and a whole GPU first; its part then goes to jobs 1 and 2."""
    assert _figure_6(4, weight=(2, 1, 1, 1, 1)) == pytest.approx([1.0, 0.5, 0.5, 1.0, 1.0])
    assert _figure_6(4.5, weight=(2, 1, 1, 1, 1)) == pytest.approx([1.0, 0.75, 0.75, 1.0, 1.0])


def test_rounds_are_given_of_the_shortest_makespans_one_that_leaves_nothing_to_be_had() -> None:
    """One long job decides the makespan, and needs one of two V100s: the short ones share the other and the K80."""
    made = problem([[10.0, 1.0]] * 3, [2, 1], steps=[100_000, 100, 100])
    bare, found = solve(made, "makespan"), solve(made, "makespan", efficient=True)
    assert found.objective == pytest.approx(bare.objective, rel=1e-6)
    assert workers_used(made, found.x) == pytest.approx([2.0, 1.0], abs=1e-6)
    assert effective_throughput(made, found.x) == pytest.approx([10.0, 5.5, 5.5], rel=1e-5)
    assert found.status == "optimal"


def test_a_job_with_one_step_to_go_is_done_beside_one_with_a_trillion() -> None:
    made = problem([[10.0]] * 2, [1], steps=[1e12, 1])
    found = solve(made, "makespan")
    assert found.objective == pytest.approx(1e11, rel=1e-6)
    assert effective_throughput(made, found.x)[1] == pytest.approx(1e-11, rel=1e-6)


def test_what_is_left_beside_the_longest_job_is_dealt_out_fairly_not_by_length() -> None:
    """All that a makespan asks of the two shorter jobs is to be done by then; the shorter one has no less for it."""
    made = problem([[10.0]] * 3, [2], steps=[100_000, 50_000, 100])
    assert effective_throughput(made, solve(made, "makespan", efficient=True).x) == pytest.approx(
        [10.0, 7.5, 2.5], rel=0.2
    )


def test_finish_time_fairness_leaves_nothing_to_be_had_either() -> None:
    """The job that runs on the slow type only is the furthest behind; the other rises on beyond it."""
    made = problem([[10.0, 0.0], [0.0, 1.0]], [1, 1], elapsed=[0, 5000])
    bare, found = solve(made, "finish-time-fairness"), solve(made, "finish-time-fairness", efficient=True)
    assert found.objective == pytest.approx(bare.objective, rel=1e-6)
    assert effective_throughput(made, found.x) == pytest.approx([10.0, 1.0], rel=1e-5)


@pytest.mark.parametrize("policy", ["makespan", "finish-time-fairness"])
def test_with_nothing_left_to_do_the_time_is_dealt_out_all_the_same(policy: str) -> None:
    made = problem([[10.0, 1.0]] * 2, [1, 1], steps=[0, 0])
    assert workers_used(made, solve(made, policy, efficient=True).x) == pytest.approx([1.0, 1.0], abs=1e-6)
