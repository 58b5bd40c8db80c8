"""Jobs that miss their deadline whatever other jobs do."""

from dataclasses import replace
from typing import Any

import pytest

from support.planner.planning import holding, job
from synergy_core.model.deadlines import LateReason, late_alone
from synergy_core.model.snapshot import Job

NOW = 1000.0


def _due(left_s: float, steps: int | None = 100, **more: Any) -> Job:
    return job("j", deadline_s=NOW + left_s, steps_total=steps, **more)


@pytest.mark.parametrize(
    ("one", "speed", "reason"),
    [
        (job("j", steps_total=100), 1.0, None),
        (_due(0.0), 1.0, LateReason.PAST),
        (_due(-1.0, None), 1.0, LateReason.PAST),
        (_due(100.0), 1.0, None),
        (_due(99.0), 1.0, LateReason.TOO_TIGHT),
        (_due(99.0, steps_done=1), 1.0, None),
        (_due(99.0, None), 1.0, None),
        (_due(99.0), 0.0, None),
        (_due(-1.0, purpose="profile"), 1.0, None),
    ],
)
def test_a_job_is_late_if_its_steps_take_longer_than_is_left(one: Job, speed: float, reason: LateReason | None) -> None:
    assert late_alone(one, NOW, speed) == reason


@pytest.mark.parametrize(
    ("more", "needed"),
    [
        ({"steps_total": 100, "steps_done": 40}, 30.0),
        ({"steps_total": 100, "steps_done": 40, "pause_share": 0.25}, 40.0),
        ({"seconds_left": 90.0}, 90.0),
        ({"seconds_left": 90.0, "pause_share": 0.25}, 90.0),
        ({}, None),
    ],
)
def test_what_a_job_still_needs_has_its_pauses_in_it(more: dict[str, Any], needed: float | None) -> None:
    assert job("j", **more).left_s(2.0) == needed
    assert job("j", **more).has_end == (needed is not None)


def test_a_job_that_ends_by_time_is_late_on_any_gpu_type() -> None:
    assert late_alone(job("j", seconds_left=90.0, deadline_s=NOW + 80.0), NOW, 0.0) is LateReason.TOO_TIGHT
    assert late_alone(job("j", seconds_left=90.0, deadline_s=NOW + 100.0), NOW, 0.0) is None


def test_the_speed_of_the_run_counts_if_it_is_higher_than_what_is_known() -> None:
    running = holding("j", ("n", 1, 3, 60))
    slow = _due(50.0, running=running)
    assert late_alone(slow, NOW, 1.0) == LateReason.TOO_TIGHT
    assert late_alone(replace(slow, running=replace(running, steps_per_s=2.0)), NOW, 1.0) is None
