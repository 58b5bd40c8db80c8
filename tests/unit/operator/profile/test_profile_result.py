"""What a profile run's container says of itself, and what of it counts."""

import json
from math import isfinite
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.operator.wire import check_wire
from synergy_api.parts.profile import ProfilePoint
from synergy_api.reasons import Reason
from synergy_api.timestamps import format_time
from synergy_core.profiling.confidence import estimates
from synergy_operator.profile.points import cpu_runs, with_run
from synergy_operator.profile.result import MeasuredPoint, MeasurementFailure, read_result
from synergy_operator.views.batch_job import Target
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


def test_of_a_message_that_is_none_of_the_harness_the_beginning_and_the_last_line_are_told() -> None:
    output = "Traceback:\n" + "  File x\n" * 200 + "ValueError: bad sample 5\n"
    found = read_result(ContainerView(exit_code=1, message=output))
    assert isinstance(found, MeasurementFailure)
    assert found.reason is Reason.PROFILE_NO_RESULT
    assert found.problem.startswith("exit code 1, termination message 'Traceback:")
    assert found.problem.endswith("ValueError: bad sample 5'")
    assert len(found.problem) < 300


numbers = (
    st.floats()
    | st.integers(-(10**40), 10**40)
    | st.sampled_from((1e-6, 1e6, 1e9, 1e154, 1e200, 2**50, 2**63, 10**400))
    | st.booleans()
)
parts = numbers | st.floats(0, 1)
optional = {
    "relative_error": numbers | st.floats(0, 1e6),
    "max_rss_bytes": numbers,
    "largest_tensor_bytes": st.integers(),
    "model_bytes": st.integers(),
    "epoch_steps": numbers,
    "gpu": st.fixed_dictionaries({"compute": parts, "bandwidth": parts, "memory_bytes": numbers}),
    "traffic": st.fixed_dictionaries(
        {"source": st.just("NCCL"), "workers": st.just(2), "bytes_per_step": numbers, "model_bytes": numbers},
        optional={"sending_seconds": numbers, "message_bytes": numbers, "overlap": parts},
    ),
}
measurements = st.fixed_dictionaries(
    {"outcome": st.just("measured"), "steps_per_second": st.floats(1e-6, 1e9, exclude_min=True) | numbers},
    optional=optional,
)


@given(st.lists(measurements, min_size=1, max_size=4))
@example([{"outcome": "measured", "steps_per_second": 1.0, "relative_error": 1e200}])
@example([{"outcome": "measured", "steps_per_second": 1.0, "max_rss_bytes": 2**63}])
def test_whatever_numbers_a_run_tells_its_point_can_be_written(told: list[dict[str, Any]]) -> None:
    points: list[ProfilePoint] = []
    for one in told:
        result = read_result(ContainerView(exit_code=0, message=json.dumps(one)))
        if isinstance(result, MeasurementFailure):
            assert result.reason is Reason.PROFILE_NO_RESULT
            continue
        runs = len(points[0].runs) if points else 0
        where = {"memory_bytes": 1 << 30, "client_thread_percent": 100}
        target = Target(1000, repeat=runs)
        points = with_run(points, "V100", target, result, **where, job="job-1-1000", measured_at=format_time(0.0))
        assert len(points[0].runs) == runs + 1
        if result.traffic is not None:
            check_wire(result.traffic.to_wire())
        known = estimates(cpu_runs(points, "V100"))[1000]
        assert isfinite(known.low)
        assert isfinite(known.high)
    for point in points:
        check_wire(point.to_wire())


@pytest.mark.parametrize(
    ("field", "value"), [("relative_error", 1e200), ("relative_error", -1.0), ("max_rss_bytes", 2**63)]
)
def test_a_number_out_of_range_is_no_measurement_and_is_named(field: str, value: float) -> None:
    said = {"outcome": "measured", "steps_per_second": 2.0, "seconds": "s" * 300, field: value}
    found = read_result(ContainerView(exit_code=0, message=json.dumps(said)))
    assert isinstance(found, MeasurementFailure)
    assert f": {field}: Input should be " in found.problem


@pytest.mark.parametrize(
    ("first", "last"),
    [((0.0, 0), (1.0, 2**63)), ((0.0, 0), (1.0, 10**400)), ((-1e308, 0), (1e308, 5)), ((0.0, -5), (1.0, 5))],
)
def test_marks_that_no_run_can_have_are_ignored_and_the_point_counts(
    first: tuple[float, int], last: tuple[float, int]
) -> None:
    said = {"outcome": "measured", "steps_per_second": 2.0, "together": {"marks": [first, last]}}
    assert read_result(ContainerView(message=json.dumps(said))) == MeasuredPoint(2.0, 0.0, 0)
