"""What goes between the extender and the process that makes a forecast. Who only asks need not load what simulates."""

from dataclasses import dataclass

from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig


@dataclass(frozen=True, slots=True)
class ForecastQuestion:
    """A snapshot with the cluster's past jobs, how the cluster is planned, and how many futures are drawn."""

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
    """The forecast of the waiting jobs of which something is known."""

    starts: tuple[StartForecast, ...]
    draws: int
    """0 where there is no past to draw from."""
