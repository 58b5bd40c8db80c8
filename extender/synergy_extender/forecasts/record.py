"""Errors of forecasts, found by keeping the forecasts of each waiting job until the job starts. Pure.

A forecast made shortly before a start is easily right. So each start is compared with one forecast for each of several
horizons: the newest one that is at least as old as the horizon.
"""

from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, Literal

from synergy_extender.forecasts.question import StartForecast

HORIZONS: Final[Mapping[str, float]] = {"5m": 300.0, "1h": 3600.0, "4h": 14_400.0, "24h": 86_400.0}
"""The horizons in seconds, by name."""
_APART: Final = 8
"""Forecasts kept for each job and horizon: one for each eighth of the horizon."""
_SLACK_S: Final = 1.0
Place = Literal["early", "inside", "late"]


@dataclass(frozen=True, slots=True)
class Score:
    """A start compared with one forecast of it."""

    horizon: str
    error_s: float
    """Absolute error of the median; infinite if the start was beyond the forecast's horizon."""
    place: Place | None
    """Position of the start relative to the 10th and the 90th percentile; None if all draws agreed."""


_Kept = deque[tuple[float, StartForecast]]


class Record:
    """The kept forecasts of the waiting jobs."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, _Kept]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._kept))

    def keep(self, made_at: float, forecast: StartForecast) -> None:
        """Remember a forecast that was made at `made_at`."""
        by_horizon = self._kept.setdefault(forecast.job, {name: deque() for name in HORIZONS})
        for name, horizon in HORIZONS.items():
            kept = by_horizon[name]
            if not kept or made_at - kept[-1][0] >= horizon / _APART:
                kept.append((made_at, forecast))
            while len(kept) > 1 and kept[1][0] <= made_at - horizon:
                kept.popleft()

    def started(self, job: str, at: float) -> list[Score]:
        """The scores of the forecasts of a job that starts at `at`. The forecasts are then forgotten."""
        scores = []
        for name, kept in self._kept.pop(job, {}).items():
            old = [forecast for made_at, forecast in kept if made_at <= at - HORIZONS[name]]
            if old:
                scores.append(_score(name, old[-1], at))
        return scores

    def forget_all_but(self, jobs: Container[str]) -> None:
        """Forget deleted jobs."""
        for job in self:
            if job not in jobs:
                del self._kept[job]

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


def _score(horizon: str, forecast: StartForecast, at: float) -> Score:
    error = inf if forecast.p50 == inf else abs(at - forecast.p50)
    place: Place | None = "inside"
    if forecast.p10 == forecast.p90:
        place = None
    elif at < forecast.p10 - _SLACK_S:
        place = "early"
    elif at > forecast.p90 + _SLACK_S:
        place = "late"
    return Score(horizon, error, place)
