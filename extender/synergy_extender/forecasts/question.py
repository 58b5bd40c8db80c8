"""The messages between the extender and the process that makes a forecast. The extender can import them without the
simulator."""

from dataclasses import dataclass

from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig


@dataclass(frozen=True, slots=True)
class ForecastQuestion:
    """A snapshot with the cluster's past jobs, the planner's configuration, and the number of futures to draw."""

    snapshot: core.Snapshot
    config: PlanConfig
    draws: int


@dataclass(frozen=True, slots=True)
class StartForecast:
    """When a waiting job starts: 10th, 50th and 90th percentile, Unix time; infinite: beyond the horizon."""

    job: str
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class ForecastAnswer:
    """The forecasts of the waiting jobs that can be forecast."""

    starts: tuple[StartForecast, ...]
    draws: int
    """Number of drawn futures; 0 if there is no past to draw from."""
