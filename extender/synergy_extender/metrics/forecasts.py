"""Forecasts of when jobs start, and how right they were."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from synergy_extender.forecasts.record import HORIZONS

_SECONDS = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_ERROR = (10, 30, 60, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400, 259_200)


class ForecastMetrics:
    """How long forecasts take, and how far they were from the starts that followed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Histogram(
            "kube_synergy_forecast_seconds",
            "Time of one forecast, with the start of its process.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.failures = Counter(
            "kube_synergy_forecast_failures_total", "Forecasts without an answer.", registry=registry
        )
        self.off = Gauge(
            "kube_synergy_forecasts_off",
            "1 while jobs get no estimate for this reason: failures (several in a row) or definitions (the served "
            "TrainingJobs lack the fields).",
            ["reason"],
            registry=registry,
        )
        for reason in ("failures", "definitions"):
            self.off.labels(reason)
        self.start_error = Histogram(
            "kube_synergy_forecast_start_error_seconds",
            "Of jobs that started: how far the median of the newest forecast was off that was made at least so long "
            "before (horizon).",
            ["horizon"],
            buckets=_ERROR,
            registry=registry,
        )
        self.starts = Counter(
            "kube_synergy_forecast_starts_total",
            "Starts of jobs by their place beside the 10th and 90th percentile of that forecast: early, inside, late.",
            ["horizon", "place"],
            registry=registry,
        )
        for horizon in HORIZONS:
            self.start_error.labels(horizon)
            for place in ("early", "inside", "late"):
                self.starts.labels(horizon, place)
