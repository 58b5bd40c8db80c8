"""When a run that did not end well is followed by the next."""

from typing import Final

_FIRST_SECONDS: Final = 10.0
_MOST_SECONDS: Final = 300.0
_MOST_REFUSED_SECONDS: Final = 600.0
_EVICTED_SECONDS: Final = 10.0


def backoff_seconds(failures: int) -> float:
    """Wait after the given number of failed runs (at least 1): 10 s, doubled by each, 5 min at the most."""
    return min(_MOST_SECONDS, _doubled(failures))


def refused_seconds(refusals: int) -> float:
    """Wait after the given number of refused runs in a row (at least 1): 10 s, doubled by each, 10 min at the most.

    A job that attains no service is first under LAS and displaces others for each try. Tries must become rare.
    """
    return min(_MOST_REFUSED_SECONDS, _doubled(refusals))


def evicted_seconds() -> float:
    """Wait after a run that was lost through no fault of its own: long enough for the ledger to learn what happened."""
    return _EVICTED_SECONDS


def _doubled(times: int) -> float:
    return _FIRST_SECONDS * float(1 << min(times - 1, 16))
