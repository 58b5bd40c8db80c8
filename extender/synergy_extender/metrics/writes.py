"""Writes to the API server."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class WriteMetrics:
    """What was written, and what the API server refused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.status = Counter(
            "kube_synergy_status_writes_total",
            "Writes of status, by kind and outcome.",
            ["kind", "outcome"],
            registry=registry,
        )
        self.refused = Counter(
            "kube_synergy_refused_writes_total",
            "Writes of status that the API server refused, by code.",
            ["code"],
            registry=registry,
        )
        self.undeclared_fields = Gauge(
            "kube_synergy_undeclared_fields",
            "Fields that the extender leaves out because the served CustomResourceDefinition does not declare them.",
            ["crd"],
            registry=registry,
        )
        self.unwritten_jobs = Gauge(
            "kube_synergy_unwritten_jobs",
            "Jobs whose newest write the API server refused.",
            registry=registry,
        )
