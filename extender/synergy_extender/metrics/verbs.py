"""Requests of kube-scheduler."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from synergy_extender.metrics import buckets


class VerbMetrics:
    """How fast the verbs answer, and what they refuse."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Histogram(
            "kube_synergy_verb_seconds",
            "Time to answer the kube-scheduler, by verb.",
            ["verb"],
            buckets=buckets.REQUEST,
            registry=registry,
        )
        self.refusals = Counter(
            "kube_synergy_verb_refusals_total", "Pods refused, by verb.", ["verb"], registry=registry
        )
        self.ledger_refusals = Counter(
            "kube_synergy_ledger_refusals_total",
            "Bindings refused because the node has no room for the pod.",
            registry=registry,
        )
