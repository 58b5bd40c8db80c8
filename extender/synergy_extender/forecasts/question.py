"""The messages between the extender and the process that makes a forecast. The extender can import them without the
simulator."""

from dataclasses import dataclass, replace
from typing import Final

from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_extender.snapshot.sent_jobs import SentJobs, received, sent

MOST_BYTES: Final = 400 << 20
"""A forecast that needs more memory fails. Above the container's limit the kernel would kill the extender too."""
NO_MEMORY: Final = 3
"""Exit status of a process for which that was not enough."""


@dataclass(frozen=True, slots=True)
class ForecastQuestion:
    """A snapshot with the cluster's past jobs, the planner's configuration, and the number of futures to draw."""

    without_jobs: core.Snapshot
    jobs: SentJobs
    config: PlanConfig
    draws: int

    @classmethod
    def about(cls, snapshot: core.Snapshot, config: PlanConfig, draws: int) -> "ForecastQuestion":
        """The question about this snapshot."""
        return cls(replace(snapshot, jobs=()), sent(snapshot.jobs), config, draws)

    @property
    def snapshot(self) -> core.Snapshot:
        """The snapshot with its jobs."""
        return replace(self.without_jobs, jobs=received(self.jobs))


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
