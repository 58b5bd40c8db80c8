"""What a profile run's container says of the model's tensors."""

import json

import pytest

from synergy_operator.profile_result import Measurement, read_result
from synergy_operator.views import ContainerView


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
    assert read_result(ContainerView(message=json.dumps(said))) == Measurement(2.0, 0.0, 0, False, known)
