"""Rounds and plans."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from synergy_api.parts.waiting import PREEMPTION_RULES
from synergy_extender.cluster.revocation import RULES
from synergy_extender.metrics import buckets


class PlanningMetrics:
    """How long plans take, whether rounds begin in time, and which runs are revoked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Histogram(
            "kube_synergy_plan_seconds",
            "Time of one plan() call, by mode: round, or fill between rounds.",
            ["mode"],
            buckets=buckets.PLAN,
            registry=registry,
        )
        self.write_seconds = Histogram(
            "kube_synergy_plan_write_seconds",
            "Time to write the changes of one pass, by mode.",
            ["mode"],
            buckets=buckets.PLAN,
            registry=registry,
        )
        self.failures = Counter(
            "kube_synergy_plan_failures_total", "plan() calls without an answer.", registry=registry
        )
        self.rounds = Counter("kube_synergy_rounds_total", "Rounds planned.", registry=registry)
        self.late_rounds = Counter(
            "kube_synergy_late_rounds_total", "Rounds that began before their plan was written.", registry=registry
        )
        self.revocations = Counter(
            "kube_synergy_revocations_total",
            "Runs that the extender revoked, by rule. Preemptions are yields, moves and sharing_was_slow.",
            ["rule"],
            registry=registry,
        )
        for rule in RULES:
            self.revocations.labels(rule)
        self.preemptions = Counter(
            "kube_synergy_preemptions_total",
            "Training runs that plans ended, by rule, as status.preemptions of the jobs has them.",
            ["rule"],
            registry=registry,
        )
        for rule in PREEMPTION_RULES:
            self.preemptions.labels(rule)
        self.stand_in_allocations = Counter(
            "kube_synergy_stand_in_allocations_total",
            "Plans without a new optimal allocation, because none was found in time, by what took its place.",
            ["served"],
            registry=registry,
        )
        self.estimated_speeds = Gauge(
            "kube_synergy_estimated_speeds", "Estimated speeds of jobs on GPU types.", registry=registry
        )
        self.estimate_error = Gauge(
            "kube_synergy_estimate_error",
            "Mean relative error of estimated speeds that were measured since.",
            registry=registry,
        )
        self.pair_gpu_seconds = Gauge(
            "kube_synergy_reference_pair_gpu_seconds",
            "GPU time of runs beside reference jobs, of the jobs there are: spent, and saved against all references.",
            ["kind"],
            registry=registry,
        )
        self.pair_error = Gauge(
            "kube_synergy_reference_pair_error",
            "Mean error of what such jobs were expected to keep of their speed beside others, once that was measured.",
            registry=registry,
        )
        self.clock_steps = Counter(
            "kube_synergy_clock_steps_total", "Steps of the system's clock that were followed.", registry=registry
        )
