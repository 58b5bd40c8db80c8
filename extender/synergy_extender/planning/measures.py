"""What the leader measures: gauges from the cluster's state after each pass."""

from collections import Counter
from collections.abc import Mapping, Sequence

from prometheus_client import Gauge

from synergy_api.resources.training_job import FINISHED
from synergy_core.selection.failing_nodes import FailingState
from synergy_extender.cluster.measured_speeds import errors_of_estimates
from synergy_extender.cluster.run_state import RunState, open_run, run_state, waiting_seconds
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView
from synergy_extender.colocation.measured import errors_of_predictions
from synergy_extender.metrics import Metrics
from synergy_extender.metrics.jobs import JobMetrics
from synergy_extender.metrics.planning import PlanningMetrics
from synergy_extender.tenants.uses import TenantUse

MOST_TENANTS = 256
OTHERS = "(others)"
"""No Tenant can have this name."""
_WAITS = (RunState.WAITING, RunState.BACKING_OFF)


def measure(metrics: Metrics, state: ClusterState, now: float) -> None:
    """Set all gauges that follow from the cluster's state at `now` (Unix time)."""
    jobs = list(state.jobs.values())
    stands = [run_state(job, now) for job in jobs]
    waiting = [job for job, stands_so in zip(jobs, stands, strict=True) if stands_so in _WAITS]
    holding = [job for job, stands_so in zip(jobs, stands, strict=True) if stands_so is RunState.HOLDING]
    metrics.jobs.allocations.labels("granted").set(len(holding))
    metrics.jobs.allocations.labels("revoked").set(stands.count(RunState.LEAVING))
    metrics.jobs.late.set(sum(job.status.late is not None for job in jobs))
    metrics.jobs.speed_gain.set(_speed_gain(holding))
    _measure_queue(metrics.jobs, waiting)
    _measure_tenants(metrics.jobs, state, waiting, holding, now)
    _measure_gpus(metrics.jobs, state, holding)
    metrics.planning.estimated_speeds.set(sum(len(job.status.estimates or ()) for job in jobs))
    _measure_failing(metrics.jobs, state)
    errors = [error for job in jobs for error in errors_of_estimates(job)]
    metrics.planning.estimate_error.set(sum(errors) / len(errors) if errors else 0.0)
    _measure_pairs(metrics.planning, jobs)


def _measure_failing(metrics: JobMetrics, state: ClusterState) -> None:
    counts = Counter(failing.state.value for failing in state.failing.values())
    for word in FailingState:
        metrics.failing_nodes.labels(word.value.lower()).set(counts[word.value])


def _measure_pairs(metrics: PlanningMetrics, jobs: Sequence[JobView]) -> None:
    profiles = [job.status.profile for job in jobs if job.status.profile is not None]
    spent = sum(pair.gpu_seconds for profile in profiles for pair in profile.pairs)
    metrics.pair_gpu_seconds.labels("spent").set(spent)
    saved = sum(match.saved_gpu_seconds for profile in profiles for match in profile.matches)
    metrics.pair_gpu_seconds.labels("saved").set(saved)
    errors = [error for job in jobs for error in errors_of_predictions(job)]
    metrics.pair_error.set(sum(errors) / len(errors) if errors else 0.0)


def measure_uses(metrics: JobMetrics, uses: Mapping[str, TenantUse]) -> None:
    """Set the gauge of each Tenant's GPUs. Tenants beyond `MOST_TENANTS` are counted together under `OTHERS`: each
    series costs memory in Prometheus."""
    totals = Counter[tuple[str, ...]]()
    for place, name in enumerate(sorted(uses)):
        use, told = uses[name], name if place < MOST_TENANTS else OTHERS
        for word in ("guaranteed", "used", "borrowed", "lent", "waiting"):
            for gpu_type, gpus in getattr(use, word).items():
                totals[told, gpu_type, word] += gpus
    _show(metrics.tenant_type_gpus, totals)


def _show(gauge: Gauge, values: Mapping[tuple[str, ...], float]) -> None:
    """Set the gauge's series, then drop all others. A scrape may come in between, from another thread: it finds no
    series missing that was there and still is."""
    before = [tuple(sample.labels.values()) for family in gauge.collect() for sample in family.samples]
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
    for labels in before:
        if labels not in values:
            gauge.remove(*labels)


def _speed_gain(holding: Sequence[JobView]) -> float:
    """1 where no speed is known."""
    gained = weight = 0.0
    for job in holding:
        allocation = job.status.allocation
        if allocation is not None and allocation.steps_per_second and allocation.proportional_steps_per_second:
            gained += job.spec.gpus * allocation.steps_per_second / allocation.proportional_steps_per_second
            weight += job.spec.gpus
    return gained / weight if weight else 1.0


def _measure_queue(metrics: JobMetrics, waiting: Sequence[JobView]) -> None:
    metrics.queue_length.set(len(waiting))
    reasons = Counter(job.status.queue.reason if job.status.queue is not None else "" for job in waiting)
    _show(metrics.waiting, {(reason,): count for reason, count in reasons.items()})


def _measure_tenants(
    metrics: JobMetrics, state: ClusterState, waiting: Sequence[JobView], holding: Sequence[JobView], now: float
) -> None:
    def tenant(job: JobView) -> str:
        return state.tenancy.established(job.key.namespace, job.spec.tenant).name

    living = (job for job in state.jobs.values() if job.status.phase not in FINISHED and job.spec.array is None)
    unfinished = Counter(map(tenant, living))
    held, wanted = Counter[str](), Counter[str]()
    for job in holding:
        held[tenant(job)] += job.spec.gpus
    oldest: dict[str, float] = {}
    for job in waiting:
        wanted[tenant(job)] += job.spec.gpus
        oldest[tenant(job)] = max(oldest.get(tenant(job), 0.0), waiting_seconds(job, now))
    uses = {"held": held, "wanted": wanted}
    _show(metrics.tenant_jobs, {(name,): count for name, count in unfinished.items()})
    _show(metrics.tenant_gpus, {(name, use): gpus[name] for name in unfinished for use, gpus in uses.items()})
    _show(metrics.oldest_waiting, {(name,): oldest.get(name, 0.0) for name in unfinished})


def _measure_gpus(metrics: JobMetrics, state: ClusterState, holding: Sequence[JobView]) -> None:
    total, held = Counter[str](), Counter[str]()
    for capacity in state.capacities:
        total[capacity.gpu_type] += capacity.gpus
        held[capacity.gpu_type] += -(-state.pods.held(capacity.name).gpus // capacity.devices_per_gpu)
    shared = Counter({gpu_type: _shared(holding, gpu_type) for gpu_type in total})
    uses = {"all": total, "held": held, "shared": shared}
    _show(metrics.gpus, {(gpu_type, use): gpus[gpu_type] for gpu_type in total for use, gpus in uses.items()})


def _shared(holding: Sequence[JobView], gpu_type: str) -> int:
    """GPUs of the type that several jobs share as planned."""
    groups = set()
    for job in holding:
        allocation = open_run(job)
        if allocation is not None and allocation.gpu_type == gpu_type:
            partners = allocation.shared_gpu.asked if allocation.shared_gpu is not None else []
            if partners:
                groups.add(frozenset((str(job.key), *partners)))
    return len(groups)
