"""Deadlines as throughputs: who asks for how much, whose deadlines collide, and who has no round to lose."""

from typing import Any

import numpy as np
import pytest

from support.planner.allocation import problem
from support.planner.planning import job
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.queue import Queue
from synergy_core.policies.rounds.shares_deadlines import Deadlines, with_deadlines

NOW, ROUND_S = 5000.0, 100.0


def _deadlines(
    *told: dict[str, Any], speeds: Any = ((10.0, 2.0),), workers: Any = (9, 9), aware: bool = True, known: bool = True
) -> tuple[Problem, Deadlines]:
    """Of jobs with 1,000 steps left each, and these `deadline_s` from now."""
    jobs: list[Job] = []
    for at, each in enumerate(told):
        due = {**each, "deadline_s": NOW + each["deadline_s"]} if "deadline_s" in each else each
        jobs.append(job(f"j{at}", **{"steps_total": 1000, **due}))
    rows = [list(speeds[at % len(speeds)]) for at in range(len(jobs))]
    made = problem(rows, workers)
    by_type = {one.name: dict(zip(made.types, row, strict=True)) for one, row in zip(jobs, rows, strict=True)}
    speeds_of = (lambda one: by_type[one.name]) if known else (lambda _: {"t0": 0.0})
    queue = Queue(NOW, tuple(jobs), lambda _: 1.0, round_s=ROUND_S, speeds=speeds_of, aware=aware)
    return with_deadlines(queue, jobs, made, Budget())


def test_a_deadline_counts_two_rounds_early() -> None:
    made, found = _deadlines({"deadline_s": 700.0}, {})
    assert made.slo == pytest.approx([500.0, np.inf], rel=1e-5)
    assert made.slo[0] > 500.0, "a hair less is asked for than fits"
    assert found == Deadlines()


@pytest.mark.parametrize("left", [300.0, 200.0, 150.0])
def test_a_job_without_a_round_to_lose_has_all_its_time_and_is_pressed(left: float) -> None:
    """100 s of work at its fastest; two rounds early there are at most 100 s."""
    made, found = _deadlines({"deadline_s": left}, {"deadline_s": 5000.0})
    assert made.slo[0] == pytest.approx(100.0, rel=1e-5)
    assert found.pressed == {"j0"}
    assert found.colliding == ()


def test_a_job_that_is_late_in_any_case_takes_what_is_left_and_presses_nobody() -> None:
    made, found = _deadlines({"deadline_s": 50.0}, {"deadline_s": 310.0}, workers=(1, 0))
    assert made.slo[1] == pytest.approx(110.0, rel=1e-4)
    assert made.slo[0] == pytest.approx(1000.0 / (10.0 * (1 - 1 / 1.1)), rel=1e-3)
    assert found == Deadlines()


def test_of_deadlines_that_cannot_all_be_kept_as_many_as_possible_are() -> None:
    """Both need the one fast GPU for most of their time."""
    made, found = _deadlines({"deadline_s": 320.0}, {"deadline_s": 320.0}, speeds=((10.0, 0.0),), workers=(1, 9))
    assert found.colliding == ("j1",)
    assert made.slo[0] == pytest.approx(120.0, rel=1e-5)
    assert made.slo[1] == pytest.approx(1000.0 / (10.0 * (1 - 1 / 1.2)), rel=1e-4)
    assert found.pressed == frozenset()


def test_a_job_that_others_leave_nothing_has_no_deadline_in_the_problem() -> None:
    made, found = _deadlines({"deadline_s": 300.0}, {"deadline_s": 300.0}, speeds=((10.0, 0.0),), workers=(1, 9))
    assert found.colliding == ("j1",)
    assert found.pressed == {"j0"}
    assert made.slo[1] == np.inf


@pytest.mark.parametrize("more", [{"steps_total": None}, {}])
def test_jobs_without_a_deadline_a_length_or_a_speed_ask_for_nothing(more: dict[str, Any]) -> None:
    """Nor do they keep those behind them from it."""
    due = {"deadline_s": 700.0, **more} if more else {}
    made, found = _deadlines(due, {"deadline_s": 700.0})
    assert made.slo == pytest.approx([np.inf, 500.0], rel=1e-5)
    assert found == Deadlines()
    unknown, _ = _deadlines({"deadline_s": 700.0}, known=False)
    assert unknown.slo.tolist() == [np.inf]


def test_a_type_on_which_a_job_has_no_speed_does_not_switch_off_its_deadline() -> None:
    made, _ = _deadlines({"deadline_s": 700.0}, speeds=((10.0, 0.0),))
    assert made.slo == pytest.approx([500.0], rel=1e-5)


def test_an_agnostic_scheduler_counts_with_the_mean_speed() -> None:
    """10 and 2 steps/s on as many GPUs: 6. So 150 s of work."""
    aware, blind = (_deadlines({"deadline_s": 400.0}, aware=aware) for aware in (True, False))
    assert aware[0].slo == pytest.approx([200.0], rel=1e-5)
    assert blind[0].slo == pytest.approx([200.0], rel=1e-5)
    made, found = _deadlines({"deadline_s": 340.0}, aware=False)
    assert made.slo == pytest.approx([1000.0 / 6.0], rel=1e-5)
    assert found.pressed == {"j0"}
    assert _deadlines({"deadline_s": 340.0})[1].pressed == frozenset()


@pytest.mark.parametrize("speed", [1e-4, 1e4])
def test_however_slow_a_job_is_its_deadline_counts(speed: float) -> None:
    left = 2000.0 / speed + 2 * ROUND_S
    made, found = _deadlines({"deadline_s": left}, speeds=((speed, 0.0),))
    assert made.slo == pytest.approx([2000.0 / speed], rel=1e-5)
    assert found == Deadlines()
