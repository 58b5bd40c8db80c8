"""ThroughputProfiles that somebody wrote by hand: what is wrong with them is said on them, and no job uses them."""

from math import inf, isfinite, nan
from typing import Any

import pytest

from synergy_api.generation.crd import KINDS, custom_resource_definition
from synergy_api.resources.training_job import ProfileStatus
from synergy_core.profiling.confidence import estimates
from synergy_operator.profile.known_profiles import check_profile, profile_status
from synergy_operator.profile.points import cpu_runs

NAME = "0123456789abcdef"
POINT = {"gpuType": "V100", "cpuMillis": 1000, "memoryBytes": 1, "stepsPerSecond": 1.0}
CONFIDENCE = {"gpuType": "V100", "level": "Low", "uncertainty": 1.0, "runs": 1}
ERRORS = ("uncertainty", "runToRun", "memoryError")
"""Fields of a confidence."""
MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 2000], "memoryBytes": [1], "stepsPerSecond": [[1.0], [2.0]]}


def profile(name: str = NAME, matrix: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A ThroughputProfile as the API server has it."""
    full = {
        "fingerprint": NAME,
        "image": "example/train:1",
        "gpus": 1,
        "measuredAt": "2026-11-21T10:00:00Z",
        "matrices": [{**MATRIX, **(matrix or {})}],
        **spec,
    }
    return {"metadata": {"name": name, "generation": 1, "uid": "u", "resourceVersion": "1"}, "spec": full}


@pytest.mark.parametrize(
    ("item", "reason", "words"),
    [
        (profile(matrix={"stepsPerSecond": [[2.0], [1.0]]}), "MatrixFalls", "spec.matrices[0].stepsPerSecond falls"),
        (profile(matrix={"stepsPerSecond": [[0.0], [1.0]]}), "InvalidProfile", "spec.matrices.0.stepsPerSecond.0.0"),
        (profile(matrix={"stepsPerSecond": [[1.0]]}), "InvalidProfile", "one row for each value of cpuMillis"),
        (profile(matrix={"stepsPerSecond": [[float("nan")], [1.0]]}), "InvalidProfile", "delete the profile"),
        (profile(image=""), "InvalidProfile", "spec.image"),
        (profile(points=[{**POINT, "relativeError": -1}]), "InvalidProfile", "spec.points.0.relativeError: Input"),
        (profile(points=[{**POINT, "relativeError": nan}]), "InvalidProfile", "spec.points.0.relativeError: Input"),
        (
            profile(confidence=[{**CONFIDENCE, "uncertainty": -1}]),
            "InvalidProfile",
            "spec.confidence.0.uncertainty: In",
        ),
        (
            profile(confidence=[{**CONFIDENCE, "memoryError": nan}]),
            "InvalidProfile",
            "spec.confidence.0.memoryError: In",
        ),
        (profile(name="another"), "FingerprintDiffers", "looked for as 0123456789abcdef"),
    ],
)
def test_a_profile_that_cannot_be_is_not_used_and_says_why(item: dict[str, Any], reason: str, words: str) -> None:
    known, finding = check_profile(item)
    assert known is None
    assert finding.reason == reason
    assert words in finding.message
    status = profile_status(item, finding, 0.0)
    assert status is not None
    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Valid", "False", reason)
    assert profile_status({**item, "status": status.to_wire()}, finding, 9.0) is None


def test_a_good_profile_is_used_and_one_put_right_says_when() -> None:
    bad, good = profile(name="another"), profile()
    known, finding = check_profile(good)
    assert known is not None
    assert known.fingerprint == NAME
    before = profile_status(bad, check_profile(bad)[1], 0.0)
    assert before is not None
    after = profile_status({**good, "status": before.to_wire()}, finding, 60.0)
    assert after is not None
    (condition,) = after.conditions
    assert (condition.status, condition.reason) == ("True", "Used")
    assert condition.last_transition_time == "1970-01-01T00:01:00Z"


def test_a_status_that_somebody_spoilt_is_written_anew() -> None:
    item = profile()
    status = profile_status({**item, "status": {"conditions": [{"type": "Valid"}]}}, check_profile(item)[1], 0.0)
    assert status is not None
    assert status.conditions[0].reason == "Used"


@pytest.mark.parametrize("error", [1e300, inf, 10**400], ids=["large", "infinite", "beyond a float"])
def test_an_error_that_was_stored_before_it_had_a_bound_is_read_as_the_largest(error: float) -> None:
    stored = {**POINT, "relativeError": error, "runs": [{"stepsPerSecond": 1.0, "relativeError": error}]}
    known, finding = check_profile(profile(points=[stored]))
    assert (known is not None, finding.reason) == (True, "Used")
    for points in (known.points if known else [], ProfileStatus.model_validate(measuring(stored)).points):
        assert [(point.relative_error, point.runs[0].relative_error) for point in points] == [(1e6, 1e6)]
        assert isfinite(estimates(cpu_runs(points, "V100"))[1000].high)


@pytest.mark.parametrize("error", [1e300, inf, 10**400], ids=["large", "infinite", "beyond a float"])
def test_a_confidence_that_was_stored_before_it_had_a_bound_is_read_as_the_worst(error: float) -> None:
    known, finding = check_profile(profile(confidence=[CONFIDENCE | dict.fromkeys(ERRORS, error)]))
    assert known is not None, finding
    (found,) = known.confidence
    assert (found.uncertainty, found.run_to_run, found.memory_error) == (1e6, 1e6, 1e6)


def test_a_confidence_without_the_errors_that_it_may_leave_out_is_read() -> None:
    known, finding = check_profile(profile(confidence=[CONFIDENCE]))
    assert known is not None, finding
    assert [(one.run_to_run, one.memory_error) for one in known.confidence] == [(None, None)]


def measuring(point: dict[str, Any]) -> dict[str, Any]:
    """The profile of a job with this point, as the API server has it."""
    return {"state": "Measuring", "points": [point]}


@pytest.mark.parametrize(("kind", "part"), [("ThroughputProfile", ("spec",)), ("TrainingJob", ("status", "profile"))])
def test_the_api_server_refuses_a_larger_one(kind: str, part: tuple[str, ...]) -> None:
    definition = custom_resource_definition(next(one for one in KINDS if one.name == kind))
    node = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in part:
        node = node["properties"][name]
    point = node["properties"]["points"]["items"]["properties"]
    confidence = node["properties"]["confidence"]["items"]["properties"]
    errors = [point["relativeError"], point["runs"]["items"]["properties"]["relativeError"]]
    errors += [confidence[field] for field in ERRORS]
    assert [(one.get("minimum"), one.get("maximum")) for one in errors] == [(0, 1e6)] * 5
