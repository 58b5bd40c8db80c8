"""Jobs, tenants and GPUs, as the leader sees them. Other replicas do not update them: join with kube_synergy_leader."""

from prometheus_client import CollectorRegistry, Gauge, Histogram

from synergy_extender.metrics import buckets


class JobMetrics:
    """What waits, what runs, for whom, and what tuning gains."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.queue_length = Gauge("kube_synergy_queue_length", "Jobs that wait for a place.", registry=registry)
        self.waiting = Gauge(
            "kube_synergy_waiting_jobs",
            "Waiting jobs, by the reason that they show; empty for a job that no plan has seen yet.",
            ["reason"],
            registry=registry,
        )
        self.oldest_waiting = Gauge(
            "kube_synergy_oldest_waiting_seconds",
            "Longest time that a waiting job has waited in its life, by tenant.",
            ["tenant"],
            registry=registry,
        )
        self.first_start = Histogram(
            "kube_synergy_first_start_wait_seconds",
            "Time that a job had waited when its first training run was admitted.",
            buckets=buckets.WAIT,
            registry=registry,
        )
        self.allocations = Gauge("kube_synergy_allocations", "Allocations, by state.", ["state"], registry=registry)
        self.gpus = Gauge(
            "kube_synergy_gpus",
            "GPUs by type and use: all, held (pods of anybody), shared (more than one pod).",
            ["gpu_type", "use"],
            registry=registry,
        )
        self.tenant_gpus = Gauge(
            "kube_synergy_tenant_gpus",
            "GPUs by tenant and use: held (granted to its jobs) or wanted (by its waiting jobs).",
            ["tenant", "use"],
            registry=registry,
        )
        self.tenant_type_gpus = Gauge(
            "kube_synergy_tenant_type_gpus",
            "GPUs of each Tenant with its children, by type and use: guaranteed, used, borrowed, lent or waiting.",
            ["tenant", "gpu_type", "use"],
            registry=registry,
        )
        self.tenant_jobs = Gauge(
            "kube_synergy_tenant_jobs", "Unfinished jobs, by tenant.", ["tenant"], registry=registry
        )
        self.speed_gain = Gauge(
            "kube_synergy_speed_gain_ratio",
            "Planned speed over the speed at the GPU-proportional share: mean of the running jobs, weighted by GPUs.",
            registry=registry,
        )
        self.failing_nodes = Gauge(
            "kube_synergy_failing_nodes",
            "Nodes that keep failing jobs, by state: avoided, retrying, probing or reported.",
            ["state"],
            registry=registry,
        )
        self.late = Gauge(
            "kube_synergy_late_jobs", "Jobs that will miss their deadline as things stand.", registry=registry
        )
