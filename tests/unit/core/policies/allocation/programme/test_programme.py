"""The linear programme against its definition, written down densely for another solver: optimum, prices, scarcity and
ceiling; with pairs, classes of equal jobs, gains and a surplus."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from support.planner.allocation import drawn, problem
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme.activities import activities
from synergy_core.policies.allocation.programme.point import InfeasibleError, Point, SolverError
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.programme.symmetry import apart, merge


def _programme(made: Problem, budget: Budget | None = None, *, merged: bool = True) -> Programme:
    acts = activities(made)
    keys = np.stack([made.scale, made.throughputs.sum(axis=1)], axis=1)
    found = merge(acts, keys) if merged else apart(acts, len(made.jobs))
    return Programme(found, made.workers, budget or Budget())


@dataclass
class Dense:
    """The constraints on Y, one column for each class of activities."""

    programme: Programme
    workers: Floats

    def __post_init__(self) -> None:
        acts, members = self.programme.acts, self.programme.members
        classes = len(members)
        self.speed = np.zeros((classes, len(acts)))
        self.time = np.zeros((classes, len(acts)))
        self.taken = np.zeros((len(self.workers), len(acts)))
        for one in range(len(acts)):
            self.taken[acts.type_[one], one] = acts.scale[one]
            ends = [(acts.first[one], acts.first_rate[one])]
            ends += [(acts.second[one], acts.second_rate[one])] if one >= acts.alone else []
            for job_class, rate in ends:
                self.speed[job_class, one] += rate / members[job_class]
                self.time[job_class, one] += 1.0 / members[job_class]

    def best(
        self,
        gain: Floats,
        *,
        base: Floats | None = None,
        direction: Floats | None = None,
        surplus: Floats | None = None,
    ) -> float:
        """The largest gain, and level where there is a direction."""
        unit = self.programme.fastest
        up = np.zeros(len(unit)) if direction is None else direction
        at_least = np.hstack([-self.speed / unit[:, None], (up / unit)[:, None]])
        low = -(np.zeros(len(unit)) if base is None else base) / unit
        limits = np.pad(np.vstack([self.time, self.taken]), ((0, 0), (0, 1)))
        rows, bounds = [at_least, limits], [low, np.ones(len(unit)), self.workers]
        if surplus is not None:
            rows.append(-np.append(surplus, 0.0)[None, :])
            bounds.append(np.zeros(1))
        cost = -np.append(gain, 0.0 if direction is None else 1.0)
        most = [(0, None)] * len(gain) + [(0, None if direction is not None else 0)]
        found = linprog(cost, A_ub=np.vstack(rows), b_ub=np.concatenate(bounds), bounds=most)
        assert found.status == 0
        return -float(found.fun)

    def most(self, price: Floats) -> float:
        """The largest value of throughputs at these prices."""
        return self.best(price @ self.speed)


CASES = [(seed, pairs, kinds) for seed in range(5) for pairs in (False, True) for kinds in (None, 3)]


def _case(seed: int, pairs: bool, kinds: int | None) -> tuple[Problem, Programme, Dense]:
    made = drawn(seed, 9, pairs=pairs, kinds=kinds)
    made = replace(made, workers=made.workers * [0.2, 0.3, 0.4])  # that there are too few of
    programme = _programme(made)
    return made, programme, Dense(programme, made.workers)


def _feasible(dense: Dense, point: Point, base: Floats, direction: Floats | None) -> None:
    needed = base if direction is None else base + point.level * direction
    unit = dense.programme.fastest
    assert (dense.speed @ point.time >= needed - 1e-7 * unit).all()
    assert (dense.time @ point.time <= 1.0 + 1e-7).all()
    assert (dense.taken @ point.time <= dense.workers * (1 + 1e-7)).all()
    assert point.time.min() >= 0.0
    assert dense.programme.throughput(point.time) == pytest.approx(dense.speed @ point.time)


@pytest.mark.parametrize(("seed", "pairs", "kinds"), CASES)
def test_the_highest_level_its_prices_scarcity_and_ceiling(seed: int, pairs: bool, kinds: int | None) -> None:
    _, programme, dense = _case(seed, pairs, kinds)
    rng = np.random.default_rng(seed)
    unit = programme.fastest
    direction = unit * rng.uniform(0.2, 1.0, len(unit)) * rng.choice([0.0, 1.0], len(unit), p=[0.4, 0.6])
    direction[0] = unit[0]
    base = 0.5 * programme.solve(base=np.zeros(len(unit)), direction=direction[::-1] / unit[::-1] * unit).level * unit
    base *= rng.choice([0.0, 0.1], len(unit))
    point = programme.solve(base=base, direction=direction)
    _feasible(dense, point, base, direction)
    nothing = np.zeros(len(programme.acts))
    assert point.level == pytest.approx(dense.best(nothing, base=base, direction=direction), rel=1e-7)
    assert point.objective == pytest.approx(point.level)
    assert not point.cut_short
    _valid(dense, point, base + point.level * direction)
    assert point.price @ direction == pytest.approx(1.0)


def _beyond(programme: Programme, point: Point) -> tuple[Floats, Floats]:
    found = programme.beyond(point)
    return found.scarcity, found.ceiling


def _valid(dense: Dense, point: Point, had: Floats) -> None:
    """Prices bound what can be had; each class's scarcity in the place of its price does so too, and no more; with a
    small price for a class without scarcity the bound rises by that times the ceiling at most."""
    unit, value = dense.programme.fastest, float(point.price @ had)
    scarcity, ceiling = _beyond(dense.programme, point)
    assert point.price.min() >= 0.0
    assert (scarcity >= point.price).all()
    assert dense.most(point.price) == pytest.approx(value, rel=1e-6)
    largest = float((point.price * unit).max())
    for one in range(len(had)):
        alone = np.arange(len(had)) == one
        own = np.where(alone, np.maximum(scarcity, point.price), point.price)
        assert dense.most(own) <= float(own @ had) + 1e-6 * value
        room = float((scarcity - point.price)[one] * unit[one])
        if room > 1e-6 * largest:
            beyond = point.price + 1.05 * room / unit[one] * alone
            assert dense.most(beyond) > float(beyond @ had) + 1e-9 * value, "and no more"
        small = 1e-3 * largest / unit[one]
        if room < 1e-6 * largest:
            risen = dense.most(point.price + small * alone)
            assert risen <= value + small * ceiling[one] + 1e-6 * value


@pytest.mark.parametrize(("seed", "pairs", "kinds"), CASES)
def test_the_largest_gain_with_what_jobs_must_have_and_with_a_surplus(
    seed: int, pairs: bool, kinds: int | None
) -> None:
    _, programme, dense = _case(seed, pairs, kinds)
    rng = np.random.default_rng(seed)
    unit, acts = programme.fastest, programme.acts
    level = programme.solve(base=np.zeros(len(unit)), direction=unit).level
    base = unit * level * rng.choice([0.0, 0.5], len(unit))
    gain = (acts.first_rate + acts.second_rate) / float(acts.first_rate.max())
    ratio = gain - np.array([0.05, 0.15, 0.3])[acts.type_] * acts.scale
    for surplus in (None, ratio, np.where(np.arange(len(acts)) % 4 == 1, 0.0, ratio)):
        point = programme.solve(base=base, gain=gain, surplus=surplus)
        _feasible(dense, point, base, None)
        assert point.objective == pytest.approx(dense.best(gain, base=base, surplus=surplus), rel=1e-7)
        assert float(gain @ point.time) == pytest.approx(point.objective)
        assert point.level == 0.0
        assert surplus is None or surplus @ point.time >= -1e-7


@pytest.mark.parametrize("seed", range(4))
def test_a_price_is_what_one_more_step_demanded_takes_from_the_gain(seed: int) -> None:
    made, programme, _ = _case(seed, False, None)
    unit = programme.fastest
    level = programme.solve(base=np.zeros(len(unit)), direction=unit).level
    base = unit * level * np.linspace(0.2, 0.9, len(unit))
    gain = programme.acts.first_rate / unit.max()
    point = programme.solve(base=base, gain=gain)
    for one in range(len(unit)):
        step = 1e-6 * unit[one] * (np.arange(len(unit)) == one)
        less = _programme(made).solve(base=base + step, gain=gain)
        assert (point.objective - less.objective) / step[one] == pytest.approx(point.price[one], abs=1e-6)


@pytest.mark.parametrize(("own", "others"), [(1.0, 1.0), (1e6, 1.0), (1.0, 1e-6)])
def test_a_ceiling_is_the_speed_on_types_that_cost_nothing(own: float, others: float) -> None:
    """Two jobs that cannot use the K80 hold the V100; the first has the K80 to itself."""
    made = problem([[10.0 * own, 4.0 * own], [8.0 * others, 0.0], [4.0 * others, 0.0]], [1, 1])
    programme = _programme(made, merged=False)
    point = programme.solve(base=np.zeros(3), direction=np.array([0.0, 8.0, 4.0]) * others)
    assert point.level == pytest.approx(0.5)
    assert point.price * others == pytest.approx([0.0, 1 / 16, 1 / 8])
    assert programme.beyond(point).ceiling[0] == pytest.approx(4.0 * own)
    assert programme.beyond(point).scarcity * others == pytest.approx([0.0, 1 / 16, 1 / 8])


def test_a_ceiling_can_be_the_speed_of_a_pair_within_a_class_for_each_of_the_two() -> None:
    """Beside each other they are faster on the K80 than alone: 5 steps/s each."""
    made = problem(
        [[10.0, 4.0], [10.0, 4.0], [8.0, 0.0], [4.0, 0.0]],
        [1, 1],
        pairs=[(0, 1)],
        pair_throughputs=[[[0.0, 0.0], [5.0, 5.0]]],
    )
    programme = _programme(made)
    point = programme.solve(base=np.zeros(3), direction=np.array([0.0, 8.0, 4.0]))
    assert programme.beyond(point).ceiling[0] == pytest.approx(5.0)


def test_a_pair_costs_the_time_of_both() -> None:
    """The first job could run on the free K80s beside the second only, whose time is worth its gain."""
    made = problem(
        [[10.0, 0.0], [0.0, 4.0], [8.0, 0.0], [8.0, 0.0]],
        [1, 2],
        pairs=[(0, 1)],
        pair_throughputs=[[[0.0, 0.0], [6.0, 1.0]]],
    )
    programme = _programme(made, merged=False)
    point = programme.solve(base=np.zeros(4), gain=np.where(programme.acts.first > 0, programme.acts.first_rate, 0.0))
    assert point.objective == pytest.approx(12.0)
    assert programme.beyond(point).ceiling[0] == 0.0


def test_scarcity_of_a_job_without_a_price_is_the_price_that_it_could_have() -> None:
    """Half a worker: a step of the second job takes a fifth of its time, in which the first does two."""
    programme = _programme(problem([[10.0], [5.0]], [0.5]), merged=False)
    point = programme.solve(base=np.zeros(2), direction=np.array([5.0, 0.0]))
    assert point.level == pytest.approx(1.0)
    assert point.price == pytest.approx([0.2, 0.0])
    assert programme.beyond(point).scarcity == pytest.approx([0.2, 0.4])


def test_of_a_class_of_two_a_price_is_for_a_step_of_each() -> None:
    programme = _programme(problem([[10.0], [5.0], [5.0]], [0.5]))
    point = programme.solve(base=np.zeros(2), direction=np.array([5.0, 0.0]))
    assert point.price == pytest.approx([0.2, 0.0])
    assert programme.beyond(point).scarcity == pytest.approx([0.2, 0.8])


def test_where_a_pair_is_within_one_class_both_its_ends_count() -> None:
    """Four equal jobs on one GPU in pairs at 0.8 of their speed each: 2 * 0.8 / 4 for each."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    made = problem([[10.0]] * 4, [1], pairs=pairs, pair_throughputs=[[[8.0, 8.0]]] * 6)
    programme = _programme(made)
    assert programme.members.tolist() == [4.0]
    point = programme.solve(base=np.zeros(1), direction=np.ones(1))
    assert point.level == pytest.approx(4.0)
    dense = Dense(programme, made.workers)
    _feasible(dense, point, np.zeros(1), np.ones(1))
    _valid(dense, point, np.array([4.0]))
    many = _programme(problem([[10.0]] * 4, [9], pairs=pairs, pair_throughputs=[[[8.0, 8.0]]] * 6))
    assert many.solve(base=np.zeros(1), direction=np.ones(1)).level == pytest.approx(10.0)
    few = problem([[10.0, 1e-3]] * 4, [1, 4], pairs=pairs, pair_throughputs=[[[8.0, 8.0], [0.0, 0.0]]] * 6)
    busy = _programme(few).solve(base=np.zeros(1), direction=np.ones(1))
    assert busy.level == pytest.approx(4.0 + 1e-3 * 0.5)


@pytest.mark.parametrize(("seed", "kinds"), [(0, None), (1, None), (2, 4), (3, None)])
def test_pairs_that_are_not_there_at_first_are_found_if_they_help(
    seed: int, kinds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = drawn(seed, 10, pairs=True, kinds=kinds)
    whole = _programme(made)
    dense = Dense(whole, made.workers)
    monkeypatch.setattr(Programme, "_first_columns", lambda programme: np.arange(programme.acts.alone))
    programme = _programme(made)
    unit = programme.fastest
    nothing, gain = np.zeros(len(unit)), (whole.acts.first_rate + whole.acts.second_rate) / unit.max()
    point = programme.solve(base=nothing, direction=unit)
    assert point.level == pytest.approx(dense.best(np.zeros(len(whole.acts)), direction=unit), rel=1e-7)
    assert programme.solve(base=nothing, gain=gain).objective == pytest.approx(dense.best(gain), rel=1e-7)
    surplus = gain - 0.25 * whole.acts.scale
    assert _programme(made).solve(base=nothing, gain=gain, surplus=surplus).objective == pytest.approx(
        dense.best(gain, surplus=surplus), rel=1e-7
    )
    large = problem(
        np.pad(made.throughputs, ((0, 0), (0, 1))), [*made.workers, 10**7], scale=made.scale,
        pairs=made.pairs, pair_throughputs=np.pad(made.pair_throughputs, ((0, 0), (0, 1), (0, 0))),
    )  # fmt: skip
    assert _programme(large).solve(base=nothing, direction=unit).level == pytest.approx(point.level, rel=1e-6)
    low = _programme(made).solve(base=nothing, direction=1e5 * unit).level
    assert low == pytest.approx(1e-5 * point.level, rel=1e-3), "however small the level is"
    assert len(programme._columns) == len(set(programme._columns.tolist())), "each once"
    assert len(programme._columns) < len(whole.acts), "not all of them"


def test_at_first_there_are_all_jobs_alone_and_the_pairs_that_keep_most_of_both_speeds() -> None:
    """Two for each of three jobs: the pairs wait that keep least, and one does not help."""
    pairs = [(0, 1), (0, 2), (1, 2)]
    shared = [[[9, 4], [4, 4], [4, 4.1]], [[7, 9], [3, 1.3], [3, 4]], [[3, 8], [2.5, 1], [4.5, 4.3]]]
    made = problem([[10.0, 5.0, 5.0], [5.0, 5.0, 5.0], [10.0, 2.0, 5.0]], [3, 3, 3], pairs=pairs,
                   pair_throughputs=shared)  # fmt: skip
    programme = _programme(made, merged=False)
    acts = programme.acts
    kept = {
        (row, column): sum(shared[row][column][end] / made.throughputs[job, column] for end, job in enumerate(ends))
        for row, ends in enumerate(pairs)
        for column in range(3)
    }
    assert len(acts) == 9 + 8
    best = sorted(kept, key=lambda one: -kept[one])[: 2 * len(made.jobs)]
    there = [(int(acts.row[one]) - 3, int(acts.column[one])) for one in programme._columns[acts.alone :]]
    assert there == best
    assert programme._columns[: acts.alone].tolist() == list(range(9))


def test_what_a_solver_left_out_is_given_on_the_fastest_type_and_all_have_that_much_less() -> None:
    made = problem([[10.0, 4.0], [5.0, 6.0]], [1, 1])
    programme = _programme(made, merged=False)
    acts = programme.acts
    time = np.where((acts.first == 0) & (acts.column == 0), 1.0, 0.0)
    topped = programme.topped_up(time, np.array([9.0, 3e-3]))
    given = {(int(job), int(column)): part for job, column, part in zip(acts.first, acts.column, topped, strict=True)}
    assert given[0, 0] == 1.0
    assert given[1, 1] == pytest.approx(5e-4)
    assert given[1, 0] == given[0, 1] == 0.0
    full = programme.topped_up(np.where(acts.column == 1, 0.75, 0.0), np.array([3.0, 5.0]))
    assert full.sum() == pytest.approx((0.75 + 0.75 + 0.5 / 6) / ((1.5 + 0.5 / 6) / 1.0)), "the second type is too full"
    both = programme.topped_up(time, np.array([10.5, 0.0]))
    assert both == pytest.approx(time), "no more than all its time, and all the workers"
    assert programme.topped_up(time, np.array([10.0, 0.0])) is time


def test_topping_up_keeps_within_the_time_of_pairs_and_classes() -> None:
    """Two classes of two; a pair of one of each has half of the time of both classes."""
    made = problem(
        [[10.0]] * 2 + [[4.0]] * 2,
        [8],
        pairs=[(0, 2), (1, 3), (0, 3), (1, 2)],
        pair_throughputs=[[[9.0, 3.0]]] * 4,
    )
    programme = _programme(made)
    acts = programme.acts
    assert programme.members.tolist() == [2.0, 2.0]
    time = np.where(np.arange(len(acts)) >= acts.alone, 2.0, 0.0)
    assert programme.throughput(time).tolist() == [9.0, 3.0]
    topped = programme.topped_up(time, np.array([9.0, 3.4]))
    added = 0.4 * 2 / 4
    assert programme.throughput(topped) == pytest.approx(np.array([9.0, 3.4]) / (1 + added / 2))


def test_a_base_that_is_too_high_and_numbers_that_are_none_are_refused() -> None:
    made = problem([[10.0, 4.0], [8.0, 6.0]], [1, 1])
    programme = _programme(made, merged=False)
    with pytest.raises(InfeasibleError):
        programme.solve(base=np.array([11.0, 0.0]))
    with pytest.raises(InfeasibleError):
        programme.solve(base=np.array([10.0, 8.0]), direction=np.ones(2))
    for bad in (np.nan, np.inf):
        with pytest.raises(SolverError, match="not finite"):
            programme.solve(base=np.array([bad, 0.0]))
        with pytest.raises(SolverError, match="not finite"):
            programme.solve(base=np.zeros(2), direction=np.array([1.0, bad]))
    assert programme.solve(base=np.array([10.0, 6.0])).time == pytest.approx(np.array([1.0, 0.0, 0.0, 1.0]))


def test_a_budget_is_asked_before_each_run_and_bounds_it() -> None:
    made = problem([[10.0, 4.0], [8.0, 6.0]], [1, 1])
    left = iter([5.0, 0.0])
    programme = _programme(made, Budget(lambda: next(left)), merged=False)
    assert programme.solve(base=np.zeros(2), direction=np.ones(2)).level > 5.0
    limit = programme._highs.getOptionValue("time_limit")[1]
    assert limit == pytest.approx(5.0, abs=0.5)
    with pytest.raises(OutOfTimeError):
        programme.solve(base=np.array([1.0, 2.0]), direction=np.array([2.0, 1.0]))


class _Stopped:
    """HiGHS, as if time ran out where it reaches a number of iterations."""

    def __init__(self, highs: Any, iterations: int) -> None:
        self._highs = highs
        highs.setOptionValue("simplex_iteration_limit", iterations)
        highs.setOptionValue("presolve", "off")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._highs, name)

    def modelStatusToString(self, status: Any) -> str:  # noqa: N802 - HiGHS' own name
        told: str = self._highs.modelStatusToString(status)
        return "Time limit reached" if told == "Iteration limit reached" else told


def test_what_a_solver_found_feasible_before_it_was_stopped_serves_and_nothing_else() -> None:
    """From the optimum of other numbers the primal simplex method stays feasible; from nothing the dual one is not."""
    made = drawn(1, 60)
    programme = _programme(made, merged=False)
    unit = programme.fastest
    direction = unit * np.random.default_rng(0).uniform(0.1, 1.0, 60)
    best = _programme(made, merged=False).solve(base=np.zeros(60), direction=direction).level
    programme.solve(base=np.zeros(60), direction=unit)
    programme.__dict__["_highs"] = _Stopped(programme._highs, 20)
    point = programme.solve(base=np.zeros(60), direction=direction)
    assert point.cut_short
    assert 0.0 < point.level < best
    _feasible(Dense(programme, made.workers), point, np.zeros(60), direction)
    fresh = _programme(made, merged=False)
    fresh.__dict__["_highs"] = _Stopped(fresh._highs, 5)
    with pytest.raises(OutOfTimeError):
        fresh.solve(base=np.zeros(60), direction=direction)
