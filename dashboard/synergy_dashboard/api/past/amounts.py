"""How much of the history one answer reads."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from synergy_dashboard.facts import JobFact, RunFact

MOST_FACTS: Final = 50_000
"""Runs, resizes and waits: so many of each."""


MOST_JOBS: Final = 1_000
"""Jobs of the history in memory, where all of a time are read one after the other."""


def known_since_s(moments: Sequence[float]) -> float:
    """The time after which all facts of a kind were read, by the moments of those that were; -inf if all were."""
    return min(moments) if len(moments) >= MOST_FACTS else -math.inf


def ends(runs: Iterable[tuple[JobFact, RunFact]], now: float) -> list[float]:
    """The moments of runs: by their ends they are chosen."""
    return [now if run.ended_s is None else run.ended_s for _, run in runs]
