"""The fixtures of a test that failed end in a time of their own."""

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

TEARDOWN_S = 120.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """pytest-timeout stops its clock when a test fails, for debuggers. A fixture that then waits for what the failed
    test left behind would wait for ever."""
    if signal.getitimer(signal.ITIMER_REAL)[0] > 0 or item.config.getoption("usepdb"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _time_is_up)
    signal.setitimer(signal.ITIMER_REAL, TEARDOWN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _time_is_up(number: int, frame: FrameType | None) -> None:
    pytest.fail(f"the fixtures of a failed test did not end in {TEARDOWN_S:g} s")
