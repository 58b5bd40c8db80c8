"""Termination messages fit what the kubelet keeps of six containers, and keep what matters."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from synergy_profiler.measurement import Measurement
from synergy_profiler.result import Failed, Measured

OF_EACH = (12 << 10) // 6
"""Bytes."""


@given(st.text(max_size=5000), st.text(max_size=900))
@example("x" * 5000, "m" * 900)
def test_a_failure_always_fits_and_keeps_the_end_of_the_log(tail: str, message: str) -> None:
    text = Failed("Crashed", message, 1, tail).to_json()
    assert len(text.encode()) <= OF_EACH
    found = json.loads(text)
    assert message.startswith(found["message"])
    assert tail.endswith(found["log_tail"])
    assert (found["outcome"], found["reason"], found["exit_code"]) == ("failed", "Crashed", 1)


def test_a_short_log_is_kept_whole() -> None:
    assert json.loads(Failed("Crashed", "m", 1, "x" * 1500).to_json())["log_tail"] == "x" * 1500


def test_a_measurement_is_that_of_the_contract() -> None:
    measured = Measured(
        Measurement(12.3, 0.01, 50, 4.1), warmup_steps=5, cpu_used_millis=790, max_rss_bytes=41943040, cached=True
    )
    assert json.loads(measured.to_json()) == {
        "outcome": "measured",
        "steps_per_second": 12.3,
        "relative_error": 0.01,
        "steps": 50,
        "warmup_steps": 5,
        "seconds": 4.1,
        "cpu_used_millis": 790,
        "max_rss_bytes": 41943040,
        "cached": True,
    }
