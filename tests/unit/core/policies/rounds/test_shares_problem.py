"""The jobs of a queue as an allocation problem, field by field."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.planning import job
from synergy_core.model.snapshot import FieldError, Job, Tenant
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.solutions import Solutions
from synergy_core.policies.queue import Queue
from synergy_core.policies.rounds.isolation import entries, isolated_elapsed, progress
from synergy_core.policies.rounds.shares_problem import check_prices, problem_of

SPEEDS = {"A100": 8.0, "K80": 2.0}
FREE = {"K80": 3, "A100": 2}


def _queue(*jobs: Any, **more: Any) -> Queue:
    return Queue(1000.0, jobs, lambda _: 1.0, **{"round_s": 100.0, "gpus_of": FREE, **more})


def test_every_field_of_a_job_is_where_the_policies_look_for_it() -> None:
    jobs = (
        job("old", 2, arrival_s=400.0, weight=3.0, tenant="red", steps_total=100, steps_done=30),
        job("new", arrival_s=1500.0, steps_total=100, steps_done=100),
    )
    red, blue = Tenant("red", 2.0), Tenant("blue", 5.0)
    queue = _queue(*jobs, tenants=(blue, red), prices={"A100": 4.0, "K80": 0.0})
    made = problem_of(queue, jobs, {"old": SPEEDS, "new": {"K80": 5.0}}, FREE)
    assert (made.types, made.columns) == (("A100", "K80"), ("A100", "K80"))
    assert made.workers.tolist() == [2.0, 3.0]
    assert made.throughputs.tolist() == [[8.0, 2.0], [0.0, 5.0]]
    assert made.elapsed.tolist() == made.isolated_elapsed.tolist() == [600.0, 0.0]
    assert made.arrival.tolist() == [400.0, 1500.0]
    assert made.steps.tolist() == [70.0, 1.0]
    assert made.scale.tolist() == [2.0, 1.0]
    assert made.weight.tolist() == [3.0, 1.0]
    assert made.tenants == (red,)
    assert made.tenant.tolist() == [0, -1]
    assert made.cost[0] == 4.0
    assert np.isnan(made.cost[1])
    assert not len(made.pairs)
    assert made.pair_throughputs.shape == (0, 2, 2)


@pytest.mark.parametrize(
    ("received", "speed", "steps"),
    [
        ({}, 8.0, 8.0 * 100),  # a round at least
        ({"K80": 60.0, "A100": 300.0}, 8.0, 8.0 * 360),
        ({"K80": 1e300}, 8.0, 1e15),
    ],
)
def test_a_job_without_an_end_needs_as_long_again_as_it_ran_where_it_is_fastest(
    received: dict[str, float], speed: float, steps: float
) -> None:
    one = job("j", received_s=received)
    made = problem_of(_queue(one), (one,), {"j": {"A100": speed, "K80": 2.0}}, FREE)
    assert made.steps.tolist() == [steps]


def test_jobs_that_share_one_mapping_of_speeds_have_the_same_row_and_others_their_own() -> None:
    other = {"K80": 7.0}
    jobs = tuple(job(name) for name in ("a", "b", "c", "d"))
    made = problem_of(_queue(*jobs), jobs, {"a": SPEEDS, "b": other, "c": SPEEDS, "d": other}, FREE)
    assert made.throughputs.tolist() == [[8.0, 2.0], [0.0, 7.0], [8.0, 2.0], [0.0, 7.0]]


def test_a_job_of_one_gpu_is_never_spread_and_one_such_job_is_enough_for_a_column() -> None:
    jobs = (job("one"), job("two", 2), job("plain", 2))
    parts = {"one": {"K80": (0.5, 0.5)}, "two": {"K80": (0.9, 0.4), "T4": (0.1, 0.2)}}
    queue = _queue(*jobs, speed_parts=lambda each: parts.get(each.name, {}))
    made = problem_of(queue, jobs, {one.name: SPEEDS for one in jobs}, FREE)
    assert made.columns == ("A100", "K80", "K80_unconsolidated")
    assert made.column_type.tolist() == [0, 1, 1]
    assert made.throughputs == pytest.approx(np.array([[8, 2, 0], [8, 1.8, 0.8], [8, 2, 0]]))
    assert made.pair_throughputs.shape == (0, 3, 2)


def test_a_type_with_gpus_and_without_a_price_is_refused_by_name() -> None:
    free_of_charge = _queue(gpus_of={"A100": 2, "K80": 3, "T4": 0}, prices={"A100": 1.0, "K80": 0.0})
    with pytest.raises(FieldError, match="nodes: of type K80 lack price_per_hour; min-cost needs the price"):
        check_prices(free_of_charge, "min-cost")
    check_prices(_queue(gpus_of={"A100": 2, "K80": 0}, prices={"A100": 1.0}), "min-cost")


def test_the_isolated_time_grows_by_the_steps_since_the_last_entry_and_never_falls() -> None:
    """Two jobs, a half of each type each: (0.5 * 1 * 8 + 0.5 * 1.5 * 2) / 1.25 = 4.4 steps/s at most all the time."""
    jobs = (
        job("b", steps_total=100, steps_done=64, isolated_s=7.0, isolated_steps=20.0),
        job("a", steps_total=100, steps_done=9, isolated_s=5.0, isolated_steps=10.0),
    )
    made = problem_of(_queue(*jobs), jobs, {one.name: SPEEDS for one in jobs}, FREE)
    done = progress(jobs, [SPEEDS] * 2)
    speed = (1.0 * 8 + 1.5 * 2) / 2.5
    elapsed = isolated_elapsed(jobs, done, made)
    assert elapsed == pytest.approx([7.0 + 44 / speed, 5.0])
    (entry,) = entries(jobs, done, elapsed)
    assert (entry.job, entry.steps, entry.seconds) == ("b", 64.0, pytest.approx(7.0 + 44 / speed))


def test_entries_are_by_name_and_only_of_jobs_that_moved_on() -> None:
    jobs = (job("b", isolated_steps=1.0), job("a"), job("still", isolated_steps=3.0))
    made = entries(jobs, np.array([2.0, 3.0, 3.0]), np.array([20.0, 30.0, 9.0]))
    assert [(one.job, one.steps, one.seconds) for one in made] == [("a", 3.0, 30.0), ("b", 2.0, 20.0)]


def test_steps_of_a_job_that_can_run_nowhere_in_isolation_cost_no_time() -> None:
    """Types without a speed for it: an entry stays finite."""
    jobs = (job("j", steps_total=10, steps_done=5, isolated_s=2.0),)
    made = problem_of(_queue(*jobs), jobs, {"j": {"P100": 1.0}}, FREE)
    assert isolated_elapsed(jobs, np.array([5.0]), made).tolist() == [2.0]
    assert isolated_elapsed((), np.zeros(0), made).tolist() == []


Change = tuple[str, int, float]
NAMES = ("a", "b", "c")
CHANGES = st.tuples(
    st.sampled_from(("arrives", "ends", "weighs", "speeds", "gpus", "price", "moment")),
    st.integers(0, 2),
    st.sampled_from((1.0, 2.0, 3.0)),
)


def _same(one: Problem, other: Problem) -> bool:
    values = ((getattr(one, item.name), getattr(other, item.name)) for item in fields(Problem))
    return all(
        np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")
        if isinstance(mine, np.ndarray)
        else mine == theirs
        for mine, theirs in values
    )


@given(changes=st.lists(CHANGES, max_size=12), timeless=st.booleans())
def test_what_is_kept_from_the_last_plan_is_what_would_be_made_anew(changes: list[Change], timeless: bool) -> None:
    kept, now = Solutions(), 1000.0
    jobs: dict[str, Job] = {"a": job("a", steps_total=50)}
    speeds = dict.fromkeys(NAMES, SPEEDS)
    free, prices = dict(FREE), {"A100": 1.0}
    for kind, index, value in changes:
        name = NAMES[index]
        if kind == "arrives":
            jobs[name] = job(name, arrival_s=100.0 * value, tenant="red" if value > 2 else "")
        elif kind == "ends" and len(jobs) > 1:
            jobs.pop(name, None)
        elif kind == "weighs" and name in jobs:
            jobs[name] = replace(jobs[name], weight=value)
        elif kind == "speeds":
            speeds = {**speeds, name: {"A100": value, "K80": 2.0}}
        elif kind == "gpus":
            free["K80"] = int(value)
        elif kind == "price":
            prices = {"A100": value}
        else:
            now += value
        present = tuple(jobs.values())
        queue = replace(_queue(*present, prices=prices, solutions=kept), now=now)
        with_it = problem_of(queue, present, speeds, free, timeless=timeless)
        anew = problem_of(replace(queue, solutions=Solutions()), present, speeds, free, timeless=timeless)
        assert _same(with_it, anew)
        if timeless:
            assert problem_of(queue, present, speeds, free, timeless=True) is with_it, "nothing has changed"
