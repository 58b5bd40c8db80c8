"""When to leave."""

from hypothesis import given
from hypothesis import strategies as st

from synergy_job.departure import Departure


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nobody_leaves_unasked() -> None:
    assert not Departure().due(lead_s=1e9)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=5))
def test_the_earliest_request_counts(requests: list[float]) -> None:
    clock = Clock()
    departure = Departure(clock)
    for seconds in requests:
        departure.request(seconds)
    clock.now += min(requests)
    assert departure.due()
    clock.now = 100 + min(requests) - 1
    assert not departure.due()
    assert departure.due(lead_s=1.001)
