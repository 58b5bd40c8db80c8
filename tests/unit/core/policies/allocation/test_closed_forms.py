"""Policies that solve no programme, and objectives, against figures by hand and brute force."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from support.planner.allocation import drawn, problem
from synergy_core.model.snapshot import FieldError, Tenant
from synergy_core.policies.allocation import ALLOCATION_POLICIES, solve
from synergy_core.policies.allocation.policies.allox import durations
from synergy_core.policies.allocation.policies.gandiva import _allocated as allocated
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.shares import isolated_throughput


def _worth(policy: str, made: Problem, x: Any) -> float:
    return ALLOCATION_POLICIES[policy].objective(made, np.array(x))


def test_the_shortest_job_first_has_its_fastest_types_and_the_next_what_is_left() -> None:
    """Done after 10, 40 and 50 s. The first needs half of the V100s for all its time, the second the other half and
    some of the next type; the third has what is left over, which is nothing it can use."""
    made = problem(
        [[10.0, 4.0, 1.0], [10.0, 5.0, 1.0], [10.0, 2.0, 0.0]],
        [4, 1, 9],
        scale=[2, 3, 1],
        steps=[100.0, 400.0, 500.0],
    )
    found = solve(made, "sjf")
    assert found.x[0].tolist() == [1.0, 0.0, 0.0]
    assert found.x[1] == pytest.approx([2 / 3, 1 / 3, 0.0])
    assert found.x[2].tolist() == [0.0, 0.0, 0.0]
    assert found.objective == pytest.approx(10.0)
    assert found.status == "optimal"


def test_shortest_job_first_goes_on_to_slower_types_while_there_is_time_left() -> None:
    made = problem([[4.0, 2.0, 1.0]], [0.25, 0.5, 9], steps=[7.0])
    assert solve(made, "sjf").x.tolist() == [[0.25, 0.5, 0.25]]
    fast_first = problem([[1.0], [10.0]], [1], steps=[100.0, 500.0])
    assert solve(fast_first, "sjf").x.tolist() == [[0.0], [1.0]], "50 s before 100"
    long_first = problem([[1.0, 0.0], [1.0, 1.0]], [1, 1], steps=[2.0, 1.0])
    assert solve(long_first, "sjf").x.tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_a_job_that_nothing_is_left_for_is_done_never_and_the_first_decides() -> None:
    made = problem([[4.0], [2.0]], [1], steps=[8.0, 100.0])
    x = [[0.5], [0.5]]
    assert _worth("sjf", made, x) == 4.0
    assert _worth("makespan", made, x) == 100.0
    assert _worth("makespan", made, [[1.0], [0.0]]) == np.inf
    nothing = problem([[4.0], [2.0]], [1], steps=[0.0, 100.0])
    assert _worth("makespan", nothing, [[0.0], [0.5]]) == 100.0
    assert _worth("sjf", nothing, [[0.0], [0.5]]) == 0.0


def test_time_in_proportion_to_weights_is_all_of_it_at_most() -> None:
    """Weights 4, 1 and 1 on two workers: the heavy job has all its time, and each of the others half."""
    made = problem([[1.0, 1.0]] * 3, [1, 1], weight=[4.0, 1.0, 1.0])
    assert solve(made, "proportional").x == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.25], [0.25, 0.25]]))
    wide = problem([[1.0, 1.0]] * 2, [3, 1], weight=[1.0, 2.0], scale=[2, 4])
    assert solve(wide, "proportional").x == pytest.approx(np.array([[0.3, 0.1], [0.6, 0.2]]))
    light = problem([[1.0]] * 2, [4], weight=[0.25, 0.5])
    assert solve(light, "proportional").x == pytest.approx(np.ones((2, 1)))
    plenty = problem([[1.0, 1.0]] * 2, [30, 10], weight=[1.0, 2.0])
    assert solve(plenty, "proportional").x == pytest.approx(np.array([[0.75, 0.25]] * 2))


def test_gandiva_gives_every_row_the_same_part_of_the_workers_time_by_type() -> None:
    """Six workers over three jobs of 4, 1 and 2: half, all, all; that asks for 5 of 6."""
    made = problem([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [4, 2], scale=[4, 1, 2])
    x = solve(made, "gandiva").x
    assert x.sum(axis=1) == pytest.approx([0.5, 1.0, 1.0])
    assert x[1].tolist() == [1.0, 0.0]
    assert (made.scale @ x <= made.workers + 1e-9).all()
    assert x[0] / x[0].sum() == pytest.approx(x[2] / x[2].sum())


def test_what_is_too_much_for_a_type_goes_to_the_other_types_of_those_who_have_some() -> None:
    weights = np.array([[2.0, 2.0], [2.0, 0.0]])
    even = allocated(np.array([1.0, 1.0]), weights, np.array([2.0, 1.0]), np.array([2.0, 2.0]))
    assert even == pytest.approx(np.array([[0.5, 0.5], [1.0, 0.0]]))
    too_full = allocated(np.array([1.0, 1.0]), weights, np.array([2.0, 1.5]), np.array([2.0, 2.0]))
    assert too_full == pytest.approx(np.array([[0.25, 0.75], [1.0, 0.0]]), abs=1e-6)
    assert allocated(np.zeros(0), np.zeros((0, 2)), np.zeros(0), np.ones(2)).shape == (0, 2)


@pytest.mark.parametrize(
    ("scale", "kept", "workers", "packed"),
    [
        ([1, 1, 1], 0.9, 2, 1),  # one job too many: one pair makes room
        ([1, 1, 1], 0.9, 3, 0),  # there is room
        ([1, 1, 1], 0.5, 2, 0),  # no gain
        ([1, 2, 4], 0.9, 2, 0),  # of different sizes
        ([2, 2, 2], 0.9, 4, 1),
        ([1, 1, 1, 1], 0.9, 2, 2),
        ([1, 1, 1, 1], 0.9, 3, 1),
    ],
)
def test_gandiva_packs_as_many_pairs_of_equal_jobs_as_room_is_lacking_for(
    scale: list[int], kept: float, workers: int, packed: int
) -> None:
    jobs = len(scale)
    pairs = [(one, other) for one in range(jobs) for other in range(one)]
    made = problem([[1.0]] * jobs, [workers], scale=scale, pairs=pairs, pair_throughputs=[[[kept, kept]]] * len(pairs))
    x = solve(made, "gandiva").x[:, 0]
    assert (x[jobs:] > 0).sum() == packed
    together = set(np.array(pairs)[x[jobs:] > 0].ravel().tolist())
    assert len(together) == 2 * packed, "nobody in two pairs"
    assert all((x[job] == 0) == (job in together) for job in range(jobs))


def _smallest_sum(made: Problem) -> float:
    """Of all ways to put jobs on workers one after another; jobs of one worker."""
    seconds = durations(made)
    slots = [type_ for type_, count in enumerate(made.workers.astype(int)) for _ in range(count)]
    best = np.inf
    for order in permutations(range(len(seconds))):
        for cuts in np.ndindex(*[len(slots)] * len(order)):
            ends = dict.fromkeys(range(len(slots)), 0.0)
            total = 0.0
            for job, slot in zip(order, cuts, strict=True):
                ends[slot] += seconds[job, slots[slot]]
                total += ends[slot]
            best = min(best, total)
    return best / len(seconds)


@pytest.mark.parametrize("seed", range(4))
def test_alloxs_assignment_has_the_smallest_average_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    speeds = rng.uniform(1, 10, (4, 2)) * (rng.random((4, 2)) > 0.2)
    speeds[:, 0] += 0.5
    made = problem(speeds, [1, 2] if seed % 2 else [2, 1], steps=rng.uniform(10, 1000, 4))
    found = solve(made, "allox")
    assert found.objective == pytest.approx(_smallest_sum(made))
    assert (found.x.sum(axis=0) <= made.workers).all()
    assert set(found.x.ravel().tolist()) <= {0.0, 1.0}


def test_alloxs_first_jobs_run_now_the_shortest_on_each_worker() -> None:
    """One worker: the shortest first. It has to know how long jobs take."""
    made = problem([[1.0]] * 3, [1], steps=[300.0, 100.0, 200.0])
    found = solve(made, "allox")
    assert found.x[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert found.objective == pytest.approx((100 + 300 + 600) / 3)
    assert found.note == ""
    with pytest.raises(FieldError, match=r"jobs\[0\].steps_remaining: is missing; allox needs it"):
        solve(problem([[1.0]], [1], steps=[np.nan]), "allox")


def test_durations_are_steps_by_speed_where_there_are_workers_enough() -> None:
    made = problem([[4.0, 2.0, 1.0], [4.0, 0.0, 1.0]], [3, 2, 0], scale=[2, 3], steps=[100.0, 60.0])
    assert durations(made).tolist() == [[25.0, 50.0, np.inf], [15.0, np.inf, np.inf]]


def test_a_wide_job_stands_for_as_many_as_it_has_workers_and_gets_them_while_they_last() -> None:
    """The wide job is done in 10 s but holds three workers: two small ones of 12 s go first on a single worker."""
    made = problem([[1.0]] * 3, [1], steps=[10.0, 12.0, 12.0])
    assert solve(made, "allox").x[:, 0].tolist() == [1.0, 0.0, 0.0]
    made = problem([[1.0, 0.0], [1.0, 0.2], [1.0, 0.2]], [3, 2], scale=[3, 1, 1], steps=[10.0, 12.0, 12.0])
    x = solve(made, "allox").x
    assert x[0].sum() in (0.0, 1.0)
    assert (made.scale @ x <= made.workers).all()


def test_the_hierarchys_objective_is_the_smallest_level_of_the_first_step() -> None:
    """On their own 3; a fair tenant of weight 2 over weights 1 and 3; a queue of weight 5, whose first job counts."""
    tenants = (Tenant("fair", 2.0, "fairness"), Tenant("queue", 5.0, "fifo"), Tenant("none", 9.0, "fairness"))
    made = problem(
        [[2.0, 1.0]] * 5,
        [1, 1],
        scale=[1, 1, 2, 1, 1],
        weight=[3.0, 1.0, 3.0, 7.0, 7.0],
        tenant=[-1, 0, 0, 1, 1],
        tenants=tenants,
        arrival=[0, 0, 0, 9, 1],
    )
    x = np.array([[0.3, 0.0], [0.4, 0.0], [0.6, 0.0], [0.0, 0.0], [0.5, 0.0]])
    normalised = np.array([0.6, 0.8, 1.2, 0.0, 1.0]) / 1.5 * [1, 1, 2, 1, 1]
    rates = [3.0, 2.0 / 4, 2.0 * 3 / 4, np.inf, 5.0]
    expected = min(level / rate for level, rate in zip(normalised, rates, strict=True) if rate < np.inf)
    assert _worth("hierarchical", made, x) == pytest.approx(expected)
    assert expected == pytest.approx(0.4 / 3.0)


def test_finish_time_fairness_of_one_allocation_by_hand() -> None:
    """A half of one worker each in isolation: 200 + 100 / 0.5 and 100 / 1. The last has nothing to do."""
    made = problem([[1.0], [2.0], [1.0]], [3], steps=[100.0, 100.0, 0.0], scale=[2, 3, 1], elapsed=[300.0, 0.0, 5.0],
                   isolated_elapsed=[200.0, 0.0, 5.0])  # fmt: skip
    isolated = [200.0 + 100.0 / 0.5, 100.0 / (2.0 / 3.0)]
    rho = [(300.0 + 100.0 / 0.25) / isolated[0], (100.0 / 1.0) / isolated[1]]
    assert _worth("finish-time-fairness", made, [[0.25], [0.5], [0.0]]) == pytest.approx(max(rho))
    assert _worth("finish-time-fairness", made, [[1.0], [0.05], [0.0]]) == pytest.approx(100.0 / 0.1 / isolated[1])


def test_an_unweighted_sum_is_divided_by_nothing() -> None:
    made = problem([[4.0], [2.0]], [1], arrival=[5, 1])
    x = [[0.5], [0.25]]
    assert _worth("max-throughput", made, x) == 2.5
    assert _worth("fifo", made, x) == pytest.approx(1 * 0.5 + 2 * 0.25)
    assert _worth("max-min-fairness", made, x) == 0.25
    weighted = problem([[4.0], [2.0]], [2], weight=[4.0, 1.0], scale=[2, 1])
    assert _worth("max-min-fairness", weighted, x) == pytest.approx(min(0.5 * 2 / 4, 0.25))
    assert _worth("strategy-proof", weighted, x) == pytest.approx(0.25)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("weight", [[1.0, 1.0, 1.0], [2.0, 1.0, 0.5]])
def test_the_partial_allocation_on_one_worker_is_the_closed_form(weight: list[float]) -> None:
    """Shares w_m / W; without m the others have w_i / (W - w_m): f_m = prod_i ((W - w_m) / W)^(w_i / w_m)."""
    made = problem([[1.0], [5.0], [30.0]], [1], weight=weight)
    whole = sum(weight)
    part = [((whole - one) / whole) ** ((whole - one) / one) for one in weight]
    expected = [one / whole * fraction for one, fraction in zip(weight, part, strict=True)]
    found = solve(made, "strategy-proof")
    assert found.x[:, 0] == pytest.approx(expected, rel=1e-4)
    assert found.status == "optimal"


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_strategy_proof_without_rivals_has_all_and_with_equal_weights_loses_no_more_than_1_minus_1_by_e() -> None:
    alone = solve(problem([[3.0, 1.0]], [1, 1]), "strategy-proof")
    assert alone.x[0] == pytest.approx([1.0, 0.0], abs=1e-4)
    made = drawn(5, 5)
    made = problem(made.throughputs, made.workers, scale=made.scale)
    nash = effective_throughput(made, solve(made, "strategy-proof").x) / isolated_throughput(made)
    assert (nash >= np.exp(-1.0) * (1 - 1e-3)).all()


@pytest.mark.parametrize("policy", ["max-min-fairness", "makespan", "max-throughput", "fifo", "gandiva"])
def test_without_sharing_pairs_have_no_time_and_the_rest_is_as_if_there_were_none(policy: str) -> None:
    speeds = [[4.0], [3.0], [2.0]]
    shared = [[[0.9 * speeds[one][0], 0.8 * speeds[other][0]]] for one, other in ((0, 1), (0, 2), (1, 2))]
    made = problem(speeds, [1], pairs=[(0, 1), (0, 2), (1, 2)], pair_throughputs=shared)
    found = solve(made, policy, sharing=False)
    assert not found.x[3:].any()
    assert found.objective == pytest.approx(solve(problem(speeds, [1]), policy).objective)
    assert solve(made, policy).x[3:].any()


def test_a_job_that_is_done_does_not_run_where_it_cannot_either() -> None:
    """No steps at no speed take for ever, not an undefined time."""
    made = problem([[1.0, 0.0], [1.0, 1.0]], [1, 1], steps=[0.0, 10.0])
    assert durations(made).tolist() == [[0.0, np.inf], [10.0, 10.0]]
    assert solve(made, "allox").x.tolist() == [[1.0, 0.0], [0.0, 1.0]]
