"""Prometheus metrics of the extender, by subject."""

from prometheus_client import CollectorRegistry, Gauge

from synergy_extender.metrics.forecasts import ForecastMetrics
from synergy_extender.metrics.growth import GrowthMetrics
from synergy_extender.metrics.jobs import JobMetrics
from synergy_extender.metrics.leases import LeaseMetrics
from synergy_extender.metrics.planning import PlanningMetrics
from synergy_extender.metrics.verbs import VerbMetrics
from synergy_extender.metrics.writes import WriteMetrics


class Metrics:
    """All metrics of one extender, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = Gauge("kube_synergy_leader", "1 while this replica leads.", registry=self.registry)
        self.verbs = VerbMetrics(self.registry)
        self.planning = PlanningMetrics(self.registry)
        self.jobs = JobMetrics(self.registry)
        self.growth = GrowthMetrics(self.registry)
        self.writes = WriteMetrics(self.registry)
        self.leases = LeaseMetrics(self.registry)
        self.forecasts = ForecastMetrics(self.registry)
