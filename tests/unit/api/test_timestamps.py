"""Times on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.timestamps import format_time, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:01:00", 60.0),
        ("1970-01-01t00:01:00z", 60.0),
    ],
)
def test_a_time_is_read(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


def test_whole_seconds_are_written_as_kubernetes_writes_them() -> None:
    assert format_time(60.0) == "1970-01-01T00:01:00Z"
    assert format_time(0.25) == "1970-01-01T00:00:00.250Z"


def test_what_is_no_time_is_named() -> None:
    with pytest.raises(ValueError, match="'yesterday' is not an RFC 3339 time"):
        parse_time("yesterday")


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_time_that_could_not_be_written_in_utc_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not an RFC 3339 time"):
        parse_time(text)


@given(st.floats(min_value=0, max_value=4e9))
def test_writing_and_reading_keeps_the_millisecond(seconds: float) -> None:
    assert abs(parse_time(format_time(seconds)) - seconds) <= 0.0005 + 1e-6
