"""The condition `SpeedsMeasured` of a job some of whose speeds are or were estimated."""

import pytest

from support.operator.world import World
from synergy_api.parts.progress import ENOUGH_REPORTS
from synergy_operator.job.status_write import operator_part

ESTIMATES = [{"gpuType": "A100", "stepsPerSecond": 7.25}]


def _tell(world: World, *, estimates: bool = False, measured: float = 0.0, reports: int = ENOUGH_REPORTS) -> None:
    """The plan goes by an estimate of 7.25; the job has measured this."""
    own = {
        "gpuType": "A100", "stepsPerSecond": measured, "reports": reports, "estimatedStepsPerSecond": 7.25,
        "fingerprint": world.status.fingerprint,
    }  # fmt: skip
    world.job["status"]["estimates"] = ESTIMATES if estimates else None
    world.job["status"]["progress"] = {"measured": [own]} if measured else None
    world.settle()


def _said(world: World) -> tuple[str, str]:
    (condition,) = (c for c in world.status.conditions if c.type == "SpeedsMeasured")
    return condition.status, condition.reason


def test_a_job_whose_speeds_were_all_measured_has_no_such_condition() -> None:
    world = World()
    world.settle()
    assert world.reason("SpeedsMeasured") == ""


def test_what_is_estimated_is_said_as_long_as_plans_go_by_it() -> None:
    world = World()
    world.settle()
    _tell(world, estimates=True)
    assert _said(world) == ("False", "SpeedsEstimated")
    assert "A100 7.25" in world.message("SpeedsMeasured")
    assert operator_part(world.status).estimates is None, "another writer's field"
    assert world.status.problem is None, "it keeps the job from nothing"
    _tell(world)
    assert world.reason("SpeedsMeasured") == ""


@pytest.mark.parametrize(
    ("measured", "reason", "error"), [(7.0, "EstimatesChecked", "5%"), (14.5, "EstimateOff", "50%")]
)
def test_once_measured_the_error_of_the_estimate_is_said(measured: float, reason: str, error: str) -> None:
    world = World()
    world.settle()
    _tell(world, measured=measured, reports=ENOUGH_REPORTS - 1)
    assert world.reason("SpeedsMeasured") == ""
    _tell(world, measured=measured)
    assert _said(world) == ("True", reason)
    assert f"{error} off" in world.message("SpeedsMeasured")
    assert reason in world.posted()


def test_near_the_bound_what_is_said_changes_once() -> None:
    """A mean of noisy reports crosses any bound many times."""
    world = World()
    world.settle()
    said = []
    for error in (0.24, 0.26, 0.24, 0.26, 0.17, 0.16, 0.14, 0.16, 0.24, 0.26):
        _tell(world, measured=7.25 / (1.0 + error))
        said.append(_said(world)[1] == "EstimateOff")
    assert said == [False, True, True, True, True, True, False, False, False, True]
    assert world.posted().count("EstimateOff") == 2


def test_each_report_does_not_change_the_words() -> None:
    world = World()
    world.settle()
    words = set()
    for measured in (6.21, 6.23, 6.19, 6.22):
        _tell(world, measured=measured)
        words.add(world.message("SpeedsMeasured"))
    assert len(words) == 1
    assert "A100 6.2 (15% off" in words.pop()


def test_what_was_measured_before_the_spec_changed_is_said_no_more() -> None:
    world = World()
    world.settle()
    _tell(world, measured=14.5)
    world.job["spec"]["batchSize"] = 64
    world.settle()
    assert world.reason("SpeedsMeasured") == ""
