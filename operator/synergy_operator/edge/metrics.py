"""Prometheus metrics of the operator."""

import time
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.views.metadata import Key
from synergy_service.tracing import span

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """All metrics of one operator, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        prefix = "kube_synergy_operator"
        self.reconciles = Counter(
            f"{prefix}_reconciles_total",
            "Reconciles of a TrainingJob: done, again (on outdated data), or error.",
            ["outcome"],
            registry=self.registry,
        )
        for outcome in ("done", "again", "error"):
            self.reconciles.labels(outcome)
        self.reconcile_seconds = Histogram(
            f"{prefix}_reconcile_seconds",
            "Time of one reconcile with all that it wrote.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refusals = Counter(
            f"{prefix}_refusals_total",
            "Requests of runs that the API server refused, by the reason that the job shows.",
            ["reason"],
            registry=self.registry,
        )
        self.queue_length = Gauge(
            f"{prefix}_queue_length", "TrainingJobs that wait for a reconcile.", registry=self.registry
        )
        self.queue_oldest_seconds = Gauge(
            f"{prefix}_queue_oldest_seconds",
            "For how long the first of them has waited.",
            registry=self.registry,
        )
        self.runs = Counter(
            f"{prefix}_runs_total",
            "Runs that ended, by purpose (Train, Profile) and outcome.",
            ["purpose", "outcome"],
            registry=self.registry,
        )
        self.run_gpu_seconds = Counter(
            f"{prefix}_run_gpu_seconds_total",
            "GPU-seconds of runs that ended, by purpose and outcome. Purpose Profile is what profiling costs.",
            ["purpose", "outcome"],
            registry=self.registry,
        )
        self.watch_restarts = Counter(
            f"{prefix}_watch_restarts_total",
            "Watches that did not end by themselves, by resource and cause (expired, error).",
            ["resource", "cause"],
            registry=self.registry,
        )
        self.api_errors = Counter(
            f"{prefix}_api_errors_total",
            "Requests that the API server answered with an error, by code; unreachable where it did not answer.",
            ["code"],
            registry=self.registry,
        )

    def refused(self, reason: str) -> None:
        """The API server refused something that a run needs."""
        self.refusals.labels(reason).inc()

    def run_ended(self, purpose: str, outcome: str, gpu_seconds: float) -> None:
        """The accounting of a run was closed."""
        self.runs.labels(purpose, outcome).inc()
        self.run_gpu_seconds.labels(purpose, outcome).inc(max(0.0, gpu_seconds))

    def watch_restarted(self, resource: str, cause: str) -> None:
        """A watch had to restart."""
        self.watch_restarts.labels(resource, cause).inc()

    def api_failed(self, code: str) -> None:
        """A request to the API server did not succeed."""
        self.api_errors.labels(code).inc()

    def follow_queue(self, length: Callable[[], int], oldest_seconds: Callable[[], float]) -> None:
        """Read the queue's length and age whenever the metrics are read."""
        self.queue_length.set_function(length)
        self.queue_oldest_seconds.set_function(oldest_seconds)

    def timed(self, work: Callable[[Key], Awaitable[float | None]]) -> Callable[[Key], Awaitable[float | None]]:
        """`work`, with its duration and outcome counted."""

        async def timed_work(key: Key) -> float | None:
            began, outcome = time.perf_counter(), "error"
            try:
                with span("reconcile", namespace=key[0], job=key[1]):
                    wait = await work(key)
                outcome = "done"
            except TryAgain:
                outcome = "again"
                raise
            else:
                return wait
            finally:
                self.reconciles.labels(outcome).inc()
                self.reconcile_seconds.observe(time.perf_counter() - began)

        return timed_work
