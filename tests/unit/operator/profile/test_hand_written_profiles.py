"""ThroughputProfiles that somebody wrote by hand: what is wrong with them is said on them, and no job uses them."""

from typing import Any

import pytest

from synergy_operator.profile.known_profiles import check_profile, profile_status

NAME = "0123456789abcdef"
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
