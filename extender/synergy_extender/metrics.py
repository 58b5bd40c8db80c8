"""What Prometheus reads."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_FAST = (
    *(0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075),
    *(0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0),
)
_PLAN = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """All metrics of one extender, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        prefix = "kube_synergy"
        self.verb_seconds = Histogram(
            f"{prefix}_verb_seconds",
            "Time to answer the kube-scheduler, by verb.",
            ["verb"],
            buckets=_FAST,
            registry=self.registry,
        )
        self.verb_refusals = Counter(
            f"{prefix}_verb_refusals_total", "Pods refused, by verb.", ["verb"], registry=self.registry
        )
        self.ledger_refusals = Counter(
            f"{prefix}_ledger_refusals_total", "Bindings refused for want of room.", registry=self.registry
        )
        self.plan_seconds = Histogram(
            f"{prefix}_plan_seconds",
            "Time of one plan() call.",
            ["mode"],
            buckets=_PLAN,
            registry=self.registry,
        )
        self.plan_failures = Counter(
            f"{prefix}_plan_failures_total", "plan() calls without an answer.", registry=self.registry
        )
        self.stand_in_allocations = Counter(
            f"{prefix}_stand_in_allocations_total",
            "Plans that followed no new optimal allocation because none was found in time, by what served.",
            ["served"],
            registry=self.registry,
        )
        self.estimated_speeds = Gauge(
            f"{prefix}_estimated_speeds", "Speeds of jobs on GPU types that are estimated.", registry=self.registry
        )
        self.estimate_error = Gauge(
            f"{prefix}_estimate_error",
            "How far estimated speeds were off, relative to what was measured since: the mean over the jobs there are.",
            registry=self.registry,
        )
        self.rounds = Counter(f"{prefix}_rounds_total", "Rounds planned.", registry=self.registry)
        self.late_rounds = Counter(
            f"{prefix}_late_rounds_total", "Rounds that began before their plan was written.", registry=self.registry
        )
        self.queue_length = Gauge(f"{prefix}_queue_length", "Jobs that wait for a place.", registry=self.registry)
        self.allocations = Gauge(f"{prefix}_allocations", "Allocations, by state.", ["state"], registry=self.registry)
        self.gpus = Gauge(f"{prefix}_gpus", "GPUs, by type and use.", ["gpu_type", "use"], registry=self.registry)
        self.leader = Gauge(f"{prefix}_leader", "1 while this replica leads.", registry=self.registry)
        self.status_writes = Counter(
            f"{prefix}_status_writes_total",
            "Writes of status, by kind and outcome.",
            ["kind", "outcome"],
            registry=self.registry,
        )
        self.refused_writes = Counter(
            f"{prefix}_refused_writes_total",
            "Writes of status that the API server refused, by code.",
            ["code"],
            registry=self.registry,
        )
        self.undeclared_fields = Gauge(
            f"{prefix}_undeclared_fields",
            "Fields that the extender leaves out because the served CustomResourceDefinition does not declare them.",
            ["crd"],
            registry=self.registry,
        )
        self.unwritten_jobs = Gauge(
            f"{prefix}_unwritten_jobs",
            "Jobs of which the API server refused the newest write.",
            registry=self.registry,
        )
        self.clock_steps = Counter(
            f"{prefix}_clock_steps_total", "Steps of the system's clock that were followed.", registry=self.registry
        )
        self.progress_writes = Counter(
            f"{prefix}_progress_writes_total", "Writes of jobs' progress.", registry=self.registry
        )
        self.progress_waiting = Gauge(
            f"{prefix}_progress_waiting", "Jobs whose newest report waits to be written.", registry=self.registry
        )
        self.reports = Counter(
            f"{prefix}_reports_total",
            "Reports of workers, by the verdict they got.",
            ["verdict"],
            registry=self.registry,
        )
        self.report_seconds = Histogram(
            f"{prefix}_report_seconds", "Time to answer a worker's report.", buckets=_FAST, registry=self.registry
        )
