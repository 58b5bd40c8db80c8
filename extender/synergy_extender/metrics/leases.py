"""Reports of workers and their leases."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from synergy_extender.metrics import buckets


class LeaseMetrics:
    """Worker reports and their answers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reports = Counter(
            "kube_synergy_reports_total",
            "Reports of workers, by the verdict that they got.",
            ["verdict"],
            registry=registry,
        )
        self.report_seconds = Histogram(
            "kube_synergy_report_seconds",
            "Time to answer a worker's report.",
            buckets=buckets.REQUEST,
            registry=registry,
        )
        self.progress_writes = Counter(
            "kube_synergy_progress_writes_total", "Writes of jobs' progress.", registry=registry
        )
        self.progress_waiting = Gauge(
            "kube_synergy_progress_waiting", "Jobs whose newest report waits to be written.", registry=registry
        )
