"""What the controller tells Prometheus."""

from collections import Counter as Count
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from synergy_clusters.views import HubJob
from synergy_clusters.worker_clusters.worker import Worker


class Metrics(Collector):
    """Read from what the controller knows, when it is asked."""

    def __init__(
        self,
        jobs: Callable[[], Iterable[HubJob]],
        workers: Callable[[], Iterable[Worker]],
        refused: Callable[[], bool],
    ) -> None:
        self.registry = CollectorRegistry()
        self._jobs = jobs
        self._workers = workers
        self._refused = refused
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The metrics now."""
        reachable = GaugeMetricFamily(
            "kube_synergy_clusters_reachable", "1 if the worker cluster answers.", labels=["cluster"]
        )
        for worker in self._workers():
            reachable.add_metric([worker.name], float(worker.reachable))
        yield reachable
        yield GaugeMetricFamily(
            "kube_synergy_clusters_refused",
            "1 while worker clusters know newer data of this hub, so the controller does not act.",
            value=float(self._refused()),
        )
        jobs = GaugeMetricFamily(
            "kube_synergy_clusters_jobs",
            "Unfinished jobs of the hub, by worker cluster (empty: none has it) and whether they stay there.",
            labels=["cluster", "fixed"],
        )
        count = Count((job.offer.name, str(job.offer.fixed).lower()) for job in self._jobs() if not job.finished)
        for (cluster, fixed), number in sorted(count.items()):
            jobs.add_metric([cluster, fixed], number)
        yield jobs
