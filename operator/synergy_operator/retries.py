"""When a run that did not end well is followed by the next."""

from typing import Final

_FIRST_SECONDS: Final = 10.0
_MOST_SECONDS: Final = 300.0
_EVICTED_SECONDS: Final = 10.0


def backoff_seconds(failures: int) -> float:
    """Wait after the given number of failed or refused runs (at least 1): 10 s, doubled by each, 5 min at the most."""
    doublings = min(failures - 1, 16)
    return min(_MOST_SECONDS, _FIRST_SECONDS * float(1 << doublings))


def evicted_seconds() -> float:
    """Wait after a run that was lost through no fault of its own: long enough for the ledger to learn what happened."""
    return _EVICTED_SECONDS
