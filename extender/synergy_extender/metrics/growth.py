"""Nodes that are asked for, and nodes that no job needs."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class GrowthMetrics:
    """By GPUPool with autoscaling; set by the replica that leads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.promised = Gauge(
            "kube_synergy_nodes_asked_for",
            "Nodes that are asked for and not there yet, by pool.",
            ["pool"],
            registry=registry,
        )
        self.idle = Gauge(
            "kube_synergy_idle_nodes",
            "Nodes that no job has had for spec.autoscaling.idleSeconds, by pool.",
            ["pool"],
            registry=registry,
        )
        self.failures = Gauge(
            "kube_synergy_node_request_failures",
            "Requests for nodes that have failed one after the other, by pool.",
            ["pool"],
            registry=registry,
        )
        self.requests = Counter(
            "kube_synergy_node_requests_total",
            "Requests for nodes, by pool and by whether the API server took them: made, refused.",
            ["pool", "outcome"],
            registry=registry,
        )
