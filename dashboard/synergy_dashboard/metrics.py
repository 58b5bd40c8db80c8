"""The dashboard's metrics."""

from prometheus_client import CollectorRegistry, Gauge

from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.recorder.follow import Recorder


def registry_of(live: LiveCluster, recorder: Recorder) -> CollectorRegistry:
    """A registry with the metrics of these two parts."""
    registry = CollectorRegistry()
    jobs = Gauge("kube_synergy_dashboard_jobs", "TrainingJobs that the dashboard has read.", registry=registry)
    jobs.set_function(lambda: len(live.rows.jobs))
    nodes = Gauge("kube_synergy_dashboard_nodes", "Nodes with GPUs that the dashboard has read.", registry=registry)
    nodes.set_function(lambda: len(live.rows.capacities))
    streams = Gauge("kube_synergy_dashboard_streams", "Pages that follow the stream of changes.", registry=registry)
    streams.set_function(lambda: live.subscribers)
    recorded = Gauge(
        "kube_synergy_dashboard_recorded_timestamp_seconds",
        "When the history was last up to date, in Unix time; 0 before the first time.",
        registry=registry,
    )
    recorded.set_function(lambda: recorder.written_s or 0.0)
    failures = Gauge(
        "kube_synergy_dashboard_recorder_failures",
        "How often recording has ended with an error of the database since the start.",
        registry=registry,
    )
    failures.set_function(lambda: recorder.failures)
    return registry
