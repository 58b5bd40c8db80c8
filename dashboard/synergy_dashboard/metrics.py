"""The dashboard's metrics."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.recorder.follow import Recorder

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_Kind = type[CounterMetricFamily] | type[GaugeMetricFamily]
_FIGURES: Final[tuple[tuple[_Kind, str, str, Callable[[LiveCluster, Recorder], float]], ...]] = (
    (
        GaugeMetricFamily,
        "jobs",
        "TrainingJobs that the dashboard has read.",
        lambda live, _: len(live.rows.jobs),
    ),
    (
        GaugeMetricFamily,
        "nodes",
        "Nodes with GPUs that the dashboard has read.",
        lambda live, _: len(live.rows.capacities),
    ),
    (
        GaugeMetricFamily,
        "streams",
        "Pages that follow the stream of changes.",
        lambda live, _: live.subscribers,
    ),
    (
        GaugeMetricFamily,
        "recorded_timestamp_seconds",
        "When the history was last up to date, in Unix time; 0 before the first time.",
        lambda _, recorder: recorder.written_s or 0.0,
    ),
    (
        GaugeMetricFamily,
        "recorder_backlog",
        "Changes that the API server has told and the history does not have yet.",
        lambda _, recorder: recorder.waiting,
    ),
    (
        GaugeMetricFamily,
        "database_bytes",
        "Size of the history's database, measured each minute; 0 before the first time.",
        lambda _, recorder: recorder.size_bytes or 0,
    ),
    (
        CounterMetricFamily,
        "recorder_failures",
        "How often recording has ended with an error of the database.",
        lambda _, recorder: recorder.failures,
    ),
    (
        CounterMetricFamily,
        "recorder_skipped",
        "Changes of objects that this version cannot read, which are not in the history.",
        lambda _, recorder: recorder.skipped,
    ),
)
_API: Final = "/api/"
_STREAM: Final = "/api/v1/stream"


class Metrics:
    """All metrics of one dashboard, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "kube_synergy_dashboard_requests_total",
            "Answered requests of the API, by route and status code.",
            ["route", "code"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "kube_synergy_dashboard_request_seconds",
            "Time to answer a request of the API, without the stream of changes.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._parts = _Parts()
        self.registry.register(self._parts)

    def follow(self, live: LiveCluster, recorder: Recorder) -> None:
        """From now on, each scrape asks these parts."""
        self._parts.asked = (live, recorder)

    def counted(self, app: ASGIApp) -> ASGIApp:
        """The application with its API's requests counted."""
        return _Counted(app, self)


class _Parts(Collector):
    """What the watches and the recorder know, read at each scrape."""

    def __init__(self) -> None:
        self.asked: tuple[LiveCluster, Recorder] | None = None

    def describe(self) -> Iterable[Metric]:
        """Names and types, without values."""
        return [kind(f"kube_synergy_dashboard_{name}", says) for kind, name, says, _ in _FIGURES]

    def collect(self) -> Iterable[Metric]:
        """The values now; none before there are parts to ask."""
        if self.asked is None:
            return
        for kind, name, says, value in _FIGURES:
            yield kind(f"kube_synergy_dashboard_{name}", says, value=value(*self.asked))


class _Counted:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; count it with its answer's code, also where an error ends the application."""
        if scope["type"] != "http" or not scope["path"].startswith(_API):
            await self._app(scope, receive, send)
            return
        begun, code = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            # the route's template: paths have the names of jobs
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(code)).inc()
            if route != _STREAM:
                self._metrics.request_seconds.labels(route).observe(time.perf_counter() - begun)
