"""The market behind a first basis: each class's cheapest choice against a linear programme of its own, what all ask
for, and how near the prices, the level and the basis come to the optimum."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from support.planner.allocation import drawn, problem, with_placements
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme.activities import activities
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.programme.starting_basis import Market
from synergy_core.policies.allocation.programme.starting_basis import _basics as basics
from synergy_core.policies.allocation.programme.starting_basis import _Offers as Offers
from synergy_core.policies.allocation.programme.symmetry import apart


def _made(seed: int, jobs: int = 12) -> Problem:
    made = drawn(seed, jobs)
    return with_placements(made, seed) if seed % 3 == 2 else made


def _different(seed: int, jobs: int = 260) -> Problem:
    rng = np.random.default_rng(seed)
    speeds = rng.uniform(1, 10, (jobs, 1)) * np.sort(rng.uniform(0.1, 1, (jobs, 3)))[:, ::-1]
    return problem(speeds, rng.integers(40, 90, 3), scale=rng.choice([1, 1, 2, 4], jobs))


def _market(made: Problem, members: Floats | None = None) -> Market:
    acts = activities(made)
    return Market(acts, np.ones(len(made.jobs)) if members is None else members, made.workers)


def _offers(market: Market, base: Floats, direction: Floats | None, gain: Floats | None = None) -> Offers:
    some = np.zeros(market.size) if gain is None else gain
    return Offers(market, np.arange(len(base)), base, direction, gain=some, part=1.0)


def _cheapest(made: Problem, job: int, needed: float, prices: Floats, gain: Floats) -> float:
    """The least that a job pays, less what its time gains, for a throughput of `needed` in its time."""
    acts = activities(made)
    own = np.flatnonzero(acts.first == job)
    net = prices[acts.type_[own]] * acts.scale[own] - gain[own]
    rows = np.array([-acts.first_rate[own] / made.throughputs[job].max(), np.ones(len(own))])
    bounds = [-needed / made.throughputs[job].max(), 1.0]
    found = linprog(net, A_ub=rows, b_ub=bounds, bounds=(0, None), method="highs-ds")
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [0.0, 0.3, 0.9])
def test_every_class_takes_its_cheapest_choice_for_what_a_level_demands(seed: int, level: float) -> None:
    made = _made(seed)
    rng = np.random.default_rng(seed)
    fastest = made.throughputs.max(axis=1)
    base, direction = fastest * rng.uniform(0.0, 0.2, 12), fastest * rng.uniform(0.1, 0.7, 12)
    members = rng.integers(1, 4, 12).astype(float)
    prices = rng.uniform(0.1, 2.0, len(made.types)) * ([3.0, 2.0, 1.0] if seed % 2 else [1.0, 2.0, 3.0])
    market = _market(made, members)
    offers = _offers(market, base, direction)
    choice, cost, asked, paid, slope = offers.choose(prices, level)
    own = cost[np.arange(12), choice]
    nothing = np.zeros(market.size)
    demanded = base + level * direction
    expected = [_cheapest(made, job, demanded[job], prices, nothing) for job in range(12)]
    assert own == pytest.approx(expected, rel=1e-6)
    assert paid == pytest.approx(float(own @ members))
    assert asked @ prices == pytest.approx(paid)
    _, _, _, more, _ = offers.choose(prices, level + 1e-7)
    assert slope == pytest.approx((more - paid) / 1e-7, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_where_time_brings_a_gain_a_class_takes_what_is_cheapest_less_its_gain(seed: int) -> None:
    made = _made(seed)
    rng = np.random.default_rng(seed)
    acts = activities(made)
    base = made.throughputs.max(axis=1) * rng.choice([0.0, 0.3, 0.95], 12)
    gain = acts.first_rate * rng.uniform(0.0, 0.3, len(acts))
    prices = rng.uniform(0.05, 1.0, len(made.types)) * [3.0, 2.0, 1.0]
    members = rng.integers(1, 4, 12).astype(float)
    choice, cost, asked, paid, slope = _offers(_market(made, members), base, None, gain).choose(prices, 0.0)
    own = cost[np.arange(12), choice]
    expected = [_cheapest(made, job, base[job], prices, gain) for job in range(12)]
    assert own == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert paid == pytest.approx(float(own @ members), abs=1e-9)
    assert slope == 0.0
    assert float(asked @ prices) >= paid - 1e-9
    assert (asked >= 0).all()


def test_workers_asked_for_by_choice_one_type_a_mix_all_of_it_and_none() -> None:
    """Speeds 4 and 2 on types at prices 10 and 1, for one class of three jobs of two workers each."""
    made = problem([[4.0, 2.0]], [5, 5], scale=[2])
    market = _market(made, np.array([3.0]))
    prices = np.array([10.0, 1.0])

    def asked(needed: float, gain: Floats | None = None) -> list[float]:
        found: list[float] = _offers(market, np.array([needed]), None, gain).choose(prices, 0.0)[2].tolist()
        return found

    assert asked(1.0) == pytest.approx([0.0, 3 * 2 * 0.5]), "half of the time on the cheap type"
    assert asked(3.0) == pytest.approx([3.0, 3.0]), "half of the time on each"
    assert asked(4.0) == pytest.approx([6.0, 0.0], abs=1e-5)
    assert asked(0.0) == [0.0, 0.0]
    assert asked(0.0, np.array([0.0, 5.0])) == pytest.approx([0.0, 6.0]), "all its time, for the gain"
    assert asked(0.0, np.array([0.0, 1.0])) == [0.0, 0.0], "a gain below the price of two workers"
    assert asked(1.0, np.array([0.0, 5.0])) == pytest.approx([0.0, 6.0])


def test_at_the_same_price_a_class_takes_the_fast_type_for_a_part_of_its_time() -> None:
    made = problem([[4.0, 2.0]], [5, 5], scale=[2])
    offers = _offers(_market(made, np.array([3.0])), np.array([1.0]), np.zeros(1))
    assert offers.choose(np.array([1.0, 1.0]), 0.0)[2] == pytest.approx([3 * 2 * 0.25, 0.0])


def test_what_is_basic_with_each_choice() -> None:
    """Of two columns: one of them for a speed; both; all the time on one; none. Then the rows of speed and time."""
    slow, fast = np.array([0]), np.array([1])
    assert basics(2, slow, fast).astype(int).tolist() == [
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [1, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]


def test_the_most_that_a_level_can_be_is_what_the_job_that_is_slowest_for_it_can_do() -> None:
    made = problem([[4.0, 2.0], [10.0, 0.0], [3.0, 3.0]], [5, 5])
    base, direction = np.array([1.0, 0.0, 1.0]), np.array([2.0, 4.0, 0.0])
    offers = _offers(_market(made), base, direction)
    assert offers.room.tolist() == [1.5, 2.5, np.inf]
    assert offers.most == 1.5
    assert _offers(_market(made), base, None).most == 0.0
    assert _offers(_market(made), np.array([5.0, 0.0, 0.0]), direction).most == 0.0


def test_prices_begin_all_the_same_and_pay_for_all_workers_or_for_the_mean_gain() -> None:
    made = problem([[4.0, 2.0], [10.0, 0.0]], [3, 5], scale=[2, 1])
    market = _market(made)
    assert _offers(market, np.zeros(2), np.ones(2)).start().tolist() == [1 / 8, 1 / 8]
    gain = activities(made).first_rate
    assert _offers(market, np.zeros(2), None, gain).start() == pytest.approx([(4 / 2 + 10) / 2] * 2)
    assert (_offers(market, np.zeros(2), None).start() > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_after_some_steps_the_prices_clear_the_market_and_the_level_is_the_highest(seed: int) -> None:
    made = _different(seed)
    direction = made.throughputs.mean(axis=1)
    offers = _offers(_market(made), np.zeros(260), direction)
    prices, level = offers.settle(offers.start(), 0.0, 45, 0.5)
    programme = Programme(apart(activities(made), 260), made.workers, Budget())
    best = programme.solve(base=np.zeros(260), direction=direction).level
    assert level == pytest.approx(best, rel=1e-3)
    assert prices @ made.workers == pytest.approx(1.0, rel=2e-3)
    assert offers.choose(prices, level)[2] == pytest.approx(made.workers, rel=0.04)


@pytest.mark.parametrize("seed", range(4))
def test_prices_of_a_gain_clear_the_market_too(seed: int) -> None:
    made = _made(seed, 150)
    gain = activities(made).first_rate
    offers = _offers(_market(made), np.zeros(150), None, gain)
    prices, level = offers.settle(offers.start(), 0.0, 60, 0.5)
    assert level == 0.0
    _, _, asked, lost, _ = offers.choose(prices, 0.0)
    full = prices > 0.05 * prices.max()
    assert asked[full] == pytest.approx(made.workers[full], rel=0.15)
    programme = Programme(apart(activities(made), 150), made.workers, Budget())
    best = programme.solve(base=np.zeros(150), gain=gain).objective
    assert -lost + float(prices @ made.workers) == pytest.approx(best, rel=0.01), "the dual value"


def _best_ratio(made: Problem, base: Floats, gain: Floats, paid: Floats) -> float:
    """Charnes and Cooper, without any bound on workers: gains where 1 is paid."""
    acts, jobs = activities(made), len(made.jobs)
    member = acts.first == np.arange(jobs)[:, None]
    unit = made.throughputs.max(axis=1)
    speeds = np.hstack([-1.0 * member * acts.first_rate / unit[:, None], (base / unit)[:, None]])
    times = np.hstack([member, -np.ones((jobs, 1))])
    worth = -np.append(gain, 0.0)
    costs = np.append(paid[acts.type_] * acts.scale, 0.0)[None, :]
    found = linprog(worth, A_ub=np.vstack([speeds, times]), b_ub=np.zeros(2 * jobs), A_eq=costs, b_eq=[1.0])
    return -float(found.fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("needed", [0.0, 0.6])
def test_the_best_ratio_of_gain_to_payment_is_that_of_another_solver(seed: int, needed: float) -> None:
    made = _made(seed)
    acts = activities(made)
    rng = np.random.default_rng(seed)
    base = made.throughputs.max(axis=1) * needed * rng.choice([0.0, 1.0], 12)
    gain, paid = acts.first_rate, np.array([2.5, 1.5, 0.5])
    ratio = _market(made).best_ratio(base, gain, paid)
    assert ratio == pytest.approx(_best_ratio(made, base, gain, paid), rel=1e-5)
    assert ratio <= _best_ratio(made, base, gain, paid) * (1 + 1e-6)


def _steps(made: Problem, **numbers: Any) -> int:
    """Steps of the simplex method from the basis that the prices give."""
    merged = apart(activities(made), len(made.jobs))
    programme = Programme(merged, made.workers, Budget())
    programme.solve(**{"base": np.zeros(len(made.jobs)), **numbers})
    assert programme._market is not None
    found: int = programme._highs.getInfo().simplex_iteration_count
    return found


@pytest.mark.parametrize("jobs", [260, 600])
def test_from_such_a_basis_few_steps_lead_to_the_highest_level(jobs: int) -> None:
    """Of 600 jobs the prices come from a sample first."""
    drawn_ones = [_different(seed, jobs) for seed in range(8)]
    steps = [_steps(made, direction=made.throughputs.mean(axis=1)) for made in drawn_ones]
    assert sum(steps) <= 6, "without a basis more than one for each job"


def test_from_such_a_basis_few_steps_lead_to_the_largest_gain() -> None:
    steps = []
    for made in map(_different, range(8)):
        acts = activities(made)
        steps.append(_steps(made, gain=acts.first_rate / made.throughputs.mean(axis=1)[acts.first]))
    assert sum(steps) <= 750, "about one for three jobs"
