"""Jobs that are as fast on one type as on another, without a solver: as HiGHS has it, and a linear programme of its
conditions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from support.allocation import assert_valid, drawn, problem, with_placements
from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.problem import Problem, effective_throughput, time_used, workers_used
from synergy_core.policies.allocation.programme.activities import activities
from synergy_core.policies.allocation.programme.indifferent import Indifferent
from synergy_core.policies.allocation.programme.programme import InfeasibleError, Programme
from synergy_core.policies.allocation.programme.symmetry import apart
from synergy_core.policies.allocation.programme.transport import MOST_TYPES, Kinds

POLICIES = (
    "max-min-fairness",
    "max-min-fairness-water-filling",
    "makespan",
    "finish-time-fairness",
    "hierarchical",
    "min-cost-slo",
)


def _one_speed(seed: int, jobs: int, *, types: int = 3, plenty: bool = False) -> Problem:
    """Each job is as fast on all types that it can use; any set of types may be what some job can use."""
    rng = np.random.default_rng(seed)
    made = drawn(seed, jobs, plenty=plenty)
    can = rng.random((jobs, types)) < rng.choice([0.3, 0.6, 0.9])
    can[np.arange(jobs), rng.integers(types, size=jobs)] = True
    speeds = can * rng.uniform(1.0, 10.0, (jobs, 1))
    tenants = tuple(Tenant(f"t{index}", 1.0 + index) for index in range(2))
    names = tuple(f"t{index}" for index in range(types))
    return replace(
        made,
        types=names,
        columns=names,
        column_type=np.arange(types),
        workers=rng.integers(1, 6, types).astype(float) * (4 * jobs if plenty else max(1, jobs // 4)),
        throughputs=speeds,
        cost=rng.uniform(0.5, 3.0, types),
        slo=np.where(rng.random(jobs) < 0.2, 200 * made.steps / speeds.max(axis=1), np.inf),
        pair_throughputs=np.zeros((0, types, 2)),
        tenant=rng.integers(0, 2, jobs),
        tenants=tenants,
    )


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), policy=st.sampled_from(POLICIES), plenty=st.booleans(), types=st.integers(1, 4))
def test_the_solver_finds_the_same(seed: int, policy: str, plenty: bool, types: int) -> None:
    made = _one_speed(seed, 9, plenty=plenty, types=types)
    found = solve(made, policy)
    assert_valid(made, found.x)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Indifferent, "of", lambda *_: None)
        solved = solve(made, policy)
    assert found.objective == pytest.approx(solved.objective, rel=1e-7)
    if policy in {"max-min-fairness-water-filling", "hierarchical"}:  # whose throughputs are one vector
        ours, theirs = effective_throughput(made, found.x), effective_throughput(made, solved.x)
        assert ours == pytest.approx(theirs, rel=1e-5)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), policy=st.sampled_from(POLICIES[:4]))
def test_what_rounds_follow_of_an_agnostic_policy_is_what_the_solver_finds(seed: int, policy: str) -> None:
    made = drawn(seed, 12)
    found = solve(made, policy, aware=False, efficient=True)
    assert_valid(made, found.x)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Indifferent, "of", lambda *_: None)
        solved = solve(made, policy, aware=False, efficient=True)
    assert found.x.sum(axis=1) == pytest.approx(solved.x.sum(axis=1), rel=1e-4)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 100_000),
    policy=st.sampled_from(POLICIES[:4]),
    jobs=st.integers(30, 200),
    workers=st.lists(st.integers(1, 4), min_size=1, max_size=2),
)
def test_nor_where_a_crowd_wants_few_workers(seed: int, policy: str, jobs: int, workers: list[int]) -> None:
    rng = np.random.default_rng(seed)
    can = rng.random((jobs, len(workers))) < 0.7
    can[:, 0] |= ~can.any(axis=1)
    steps = 10 ** rng.uniform(0, rng.integers(1, 6), jobs)
    scale = rng.choice([1, 2, 8], jobs)
    made = problem(can * rng.uniform(1.0, 10.0, (jobs, 1)), workers, steps=steps, scale=scale)
    found = solve(made, policy, efficient=True)
    assert found.status == "optimal"
    assert_valid(made, found.x)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Indifferent, "of", lambda *_: None)
        assert found.objective == pytest.approx(solve(made, policy).objective, rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), policy=st.sampled_from(POLICIES[:4]), plenty=st.booleans())
def test_nothing_is_idle_that_somebody_could_use(seed: int, policy: str, plenty: bool) -> None:
    made = _one_speed(seed, 9, plenty=plenty)
    x = solve(made, policy).x
    idle = workers_used(made, x) < made.workers * (1.0 - 1e-6)
    waiting = time_used(made, x) < 1.0 - 1e-6
    assert not (made.throughputs[waiting][:, idle] > 0).any()


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 100_000), types=st.integers(1, 5), risen=st.floats(0.0, 0.99))
def test_a_level_is_the_optimum_and_its_prices_prove_it(seed: int, types: int, risen: float) -> None:
    made = _one_speed(seed, 6, types=types)
    rng = np.random.default_rng(seed)
    fastest = made.throughputs.max(axis=1)
    direction = fastest * rng.choice([0.0, 0.2, 1.0], 6, p=[0.2, 0.4, 0.4])
    direction[0] = fastest[0]
    programme = _programme(made)
    base = direction[::-1] * 0.3
    base *= risen * programme.solve(base=np.zeros(6), direction=base).level if base.any() else 0.0
    point = programme.solve(base=base, direction=direction)
    had = programme.throughput(point.time)
    assert (had >= (base + point.level * direction) * (1.0 - 1e-9) - 1e-12).all()
    assert point.price.min() >= 0.0
    assert point.price @ direction == pytest.approx(1.0)
    assert _most(made, point.price) == pytest.approx(float(point.price @ had), rel=1e-7)  # so no level is higher


def _programme(made: Problem) -> Programme:
    programme = Programme(apart(activities(made), len(made.jobs)), made.workers, Budget())
    assert programme._indifferent is not None
    return programme


def _most(made: Problem, price: Floats) -> float:
    """The largest value of throughputs at these prices, by another solver."""
    jobs, types = made.throughputs.shape
    job, type_ = np.divmod(np.arange(jobs * types), types)
    rows = [np.where(job == one, 1.0, 0.0) for one in range(jobs)]
    rows += [np.where(type_ == one, made.scale[job], 0.0) for one in range(types)]
    worth = -(price[:, None] * made.throughputs).ravel()
    return -float(linprog(worth, A_ub=np.array(rows), b_ub=np.concatenate([np.ones(jobs), made.workers])).fun)


@settings(deadline=None, max_examples=200)
@given(data=st.data(), types=st.integers(1, 5), rows=st.integers(1, 7), load=st.floats(0.2, 1.3))
def test_what_fits_is_dealt_out_within_the_workers(data: st.DataObject, types: int, rows: int, load: float) -> None:
    some = st.lists(st.booleans(), min_size=types, max_size=types).filter(any)
    can = np.array(data.draw(st.lists(some, min_size=rows, max_size=rows)))
    workers = np.array(data.draw(st.lists(st.integers(1, 40), min_size=types, max_size=types)), dtype=float)
    asked = np.array(data.draw(st.lists(st.integers(0, 30), min_size=rows, max_size=rows)), dtype=float)
    asked *= load * workers.sum() / max(asked.sum(), 1.0)
    kinds = Kinds(can, workers)
    fits = kinds.fit(kinds.asked(asked))
    assert fits == _fits(can, workers, asked)
    if fits:
        parts = kinds.parts(kinds.asked(asked))[kinds.of]
        assert not parts[~can].any()
        assert parts[asked > 0].sum(axis=1) == pytest.approx(1.0)
        assert (asked @ parts <= workers * (1.0 + 1e-8)).all()


def _fits(can: np.typing.NDArray[np.bool_], workers: Floats, asked: Floats) -> bool:
    """By a linear programme: whether nothing has to be left out, but for rounding."""
    rows, types = can.shape
    row, type_ = np.divmod(np.arange(rows * types), types)
    limits = [np.where(row == one, 1.0, 0.0) for one in range(rows)]
    limits += [np.where(type_ == one, 1.0, 0.0) for one in range(types)]
    worth = -np.where(can.ravel(), 1.0, 0.0)
    most = linprog(worth, A_ub=np.array(limits), b_ub=np.concatenate([asked, workers]))
    return bool(-most.fun >= asked.sum() * (1.0 - 1e-9))


def test_parts_go_by_workers_and_those_with_fewer_types_come_first() -> None:
    kinds = Kinds(np.array([[True, True], [True, False]]), np.array([6.0, 3.0]))
    by_workers = kinds.parts(kinds.asked(np.array([3.0, 2.0])))[kinds.of]
    assert by_workers == pytest.approx(np.array([[2 / 3, 1 / 3], [1.0, 0.0]]))
    full = kinds.parts(kinds.asked(np.array([4.0, 5.0])))[kinds.of]
    assert full == pytest.approx(np.array([[1 / 4, 3 / 4], [1.0, 0.0]]))


def test_it_is_for_jobs_alone_with_one_speed_on_few_types() -> None:
    def used(made: Problem) -> bool:
        merged = apart(activities(made), len(made.jobs))
        return Programme(merged, made.workers, Budget())._indifferent is not None

    one_speed = problem([[4.0, 4.0, 4.0], [6.0, 6.0, 0.0]], [1, 1, 1], scale=[2, 1])
    assert used(one_speed)
    assert not used(problem([[4.0, 3.0], [6.0, 6.0]], [1, 1]))
    assert not used(with_placements(one_speed, 0, alike=True))
    assert not used(problem([[4.0], [6.0]], [1], pairs=[(0, 1)], pair_throughputs=[[[4.0, 5.0]]]))
    assert used(problem(np.ones((2, MOST_TYPES)), [1] * MOST_TYPES))
    assert not used(problem(np.ones((2, MOST_TYPES + 1)), [1] * (MOST_TYPES + 1)))


@pytest.mark.parametrize("base", [[4.1, 0.0], [3.0, 6.0]])
def test_more_than_there_is_cannot_be_the_base(base: list[float]) -> None:
    """More than a job's fastest speed; more than the workers."""
    programme = _programme(problem([[4.0, 4.0], [6.0, 0.0]], [1, 1], scale=[2, 1]))
    programme.solve(base=np.array([2.0, 6.0]))
    for direction in (None, np.ones(2)):
        with pytest.raises(InfeasibleError):
            programme.solve(base=np.array(base), direction=direction)


def test_when_time_has_run_out_it_says_so() -> None:
    made = problem([[4.0], [6.0]], [1])
    programme = Programme(apart(activities(made), 2), made.workers, Budget(lambda: 0.0))
    with pytest.raises(OutOfTimeError):
        programme.solve(base=np.zeros(2), direction=np.ones(2))
