"""What a profile run's container says of the model's tensors."""

import json

import pytest

from synergy_operator.profile.result import MeasuredPoint, MeasurementFailure, read_result
from synergy_operator.views.pod import ContainerView


@pytest.mark.parametrize(
    ("largest", "model", "known"),
    [
        (3, 4, (3, 4)),
        (1 << 50, 1 << 50, (1 << 50, 1 << 50)),
        (5, 4, None),
        (0, 0, None),
        (1, 1 << 70, None),
        (None, 4, None),
    ],
)
def test_wrong_sizes_are_ignored_and_the_point_counts(
    largest: int | None, model: int, known: tuple[int, int] | None
) -> None:
    said = {"outcome": "measured", "steps_per_second": 2.0, "largest_tensor_bytes": largest, "model_bytes": model}
    assert read_result(ContainerView(message=json.dumps(said))) == MeasuredPoint(2.0, 0.0, 0, False, known)


@pytest.mark.parametrize("speed", [0, 1e-300, 1e300, "NaN", -1])
def test_a_speed_at_which_nothing_trains_is_no_measurement(speed: object) -> None:
    found = read_result(
        ContainerView(exit_code=0, message=json.dumps({"outcome": "measured", "steps_per_second": speed}))
    )
    assert isinstance(found, MeasurementFailure)
    assert "steps_per_second" in found.problem


@pytest.mark.parametrize(("before", "cut"), [(2000, True), (40, False)])
def test_a_long_output_is_told_from_its_end(before: int, cut: bool) -> None:
    tail = "x" * before + "\nValueError: bad sample 5\n"
    said = {"outcome": "failed", "reason": "Crashed", "message": "exit code 1", "log_tail": tail}
    found = read_result(ContainerView(exit_code=1, message=json.dumps(said)))
    assert isinstance(found, MeasurementFailure)
    assert found.problem.startswith(f"exit code 1; its last output: {'... ' if cut else ''}xxx")
    assert found.problem.endswith("ValueError: bad sample 5")
    assert len(found.problem) <= 600


def test_a_long_message_leaves_no_room_for_the_output() -> None:
    said = {"outcome": "failed", "reason": "Crashed", "message": "m" * 700, "log_tail": "bad"}
    found = read_result(ContainerView(exit_code=1, message=json.dumps(said)))
    assert isinstance(found, MeasurementFailure)
    assert found.problem == "m" * 600
