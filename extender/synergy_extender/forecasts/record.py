"""How right forecasts were: what was forecast of each waiting job is kept until the job starts. Pure.

A forecast that was made a moment before a start is easily right. So a start is compared with the newest forecast that
was made at least so long before, for some horizons.
"""

from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, Literal

from synergy_extender.forecasts.question import StartForecast

HORIZONS: Final[Mapping[str, float]] = {"5m": 300.0, "1h": 3600.0, "4h": 14_400.0, "24h": 86_400.0}
"""By name, seconds."""
_APART: Final = 8
"""Of one horizon a forecast is kept for each eighth of it: that many for each job and horizon."""
_SLACK_S: Final = 1.0
Place = Literal["early", "inside", "late"]


@dataclass(frozen=True, slots=True)
class Score:
    """One start beside a forecast of it."""

    horizon: str
    error_s: float
    """Of the median, without sign; infinite where it was beyond the forecast's horizon."""
    place: Place | None
    """Where the start was beside the 10th and the 90th percentile; None where all draws agreed."""


_Kept = deque[tuple[float, StartForecast]]


class Record:
    """What was forecast of the jobs that wait, by job."""

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
        """The scores of what was forecast of a job that starts at `at`. They are asked for once."""
        scores = []
        for name, kept in self._kept.pop(job, {}).items():
            old = [forecast for made_at, forecast in kept if made_at <= at - HORIZONS[name]]
            if old:
                scores.append(_score(name, old[-1], at))
        return scores

    def forget_all_but(self, jobs: Container[str]) -> None:
        """Forget jobs that are gone."""
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
