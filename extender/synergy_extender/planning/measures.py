"""What the leader measures: gauges from the cluster's state after each pass."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Gauge

from synergy_api.cluster.tenancy import Tenancy
from synergy_api.resources.training_job import FINISHED
from synergy_core.selection.failing_nodes import FailingState
from synergy_extender.cluster.measured_speeds import errors_of_estimates
from synergy_extender.cluster.run_state import RunState, open_run, run_state, waiting_seconds
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.measured import errors_of_predictions
from synergy_extender.metrics import Metrics
from synergy_extender.metrics.jobs import JobMetrics
from synergy_extender.tenants.uses import TenantUse

MOST_TENANTS = 256
OTHERS = "(others)"
"""No Tenant can have this name."""
_WAITS = (RunState.WAITING, RunState.BACKING_OFF)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What gauges show of a job, as long as its view and the tenants are the same."""

    job: JobView
    tenant: str
    gpus: int
    finished: bool
    lives: bool
    """It is neither finished nor an array."""
    late: bool
    estimates: int
    gain: tuple[float, float] | None
    """Speed beside that at the proportional share, and the weight of that."""
    estimate_errors: Sequence[float]
    prediction_errors: Sequence[float]
    spent: float
    saved: float
    """GPU seconds of pairs of profile runs."""


class KnownFacts:
    """Those of one cluster, from one measurement to the next."""

    def __init__(self) -> None:
        self._known: dict[Key, _Facts] = {}
        self._tenancy: Tenancy | None = None

    def of(self, state: ClusterState) -> list[_Facts]:
        """The facts of all jobs."""
        before = self._known if state.tenancy is self._tenancy else {}
        self._known, self._tenancy = {}, state.tenancy
        for key, job in state.jobs.items():
            known = before.get(key)
            self._known[key] = known if known is not None and known.job is job else _facts(job, state.tenancy)
        return list(self._known.values())


def _facts(job: JobView, tenancy: Tenancy) -> _Facts:
    profile, finished = job.status.profile, job.status.phase in FINISHED
    return _Facts(
        job=job,
        tenant=tenancy.established(job.key.namespace, job.spec.tenant).name,
        gpus=job.spec.gpus,
        finished=finished,
        lives=not finished and job.spec.array is None,
        late=job.status.late is not None,
        estimates=len(job.status.estimates or ()),
        gain=_gain(job),
        estimate_errors=errors_of_estimates(job),
        prediction_errors=errors_of_predictions(job),
        spent=sum(pair.gpu_seconds for pair in profile.pairs) if profile is not None else 0.0,
        saved=sum(match.saved_gpu_seconds for match in profile.matches) if profile is not None else 0.0,
    )


def _stands(one: _Facts, now: float) -> RunState:
    if one.job.at_rest:
        return RunState.IDLE if one.finished else RunState.HOLDING
    return run_state(one.job, now)


def measure(metrics: Metrics, state: ClusterState, now: float, known: KnownFacts | None = None) -> None:
    """Set all gauges that follow from the cluster's state at `now` (Unix time). `known` is what earlier measurements of
    the same caller leave for this one: it saves time and changes nothing."""
    facts = (known or KnownFacts()).of(state)
    stands = [_stands(one, now) for one in facts]
    waiting = [one for one, stands_so in zip(facts, stands, strict=True) if stands_so in _WAITS]
    holding = [one for one, stands_so in zip(facts, stands, strict=True) if stands_so is RunState.HOLDING]
    metrics.jobs.allocations.labels("granted").set(len(holding))
    metrics.jobs.allocations.labels("revoked").set(stands.count(RunState.LEAVING))
    metrics.jobs.late.set(sum(one.late for one in facts))
    metrics.jobs.speed_gain.set(_speed_gain(holding))
    _measure_queue(metrics.jobs, [one.job for one in waiting])
    _measure_tenants(metrics.jobs, facts, waiting, holding, now)
    _measure_gpus(metrics.jobs, state, [one.job for one in holding if not one.job.at_rest])
    metrics.planning.estimated_speeds.set(sum(one.estimates for one in facts))
    _measure_failing(metrics.jobs, state)
    metrics.planning.estimate_error.set(_mean([error for one in facts for error in one.estimate_errors]))
    metrics.planning.pair_gpu_seconds.labels("spent").set(sum(one.spent for one in facts))
    metrics.planning.pair_gpu_seconds.labels("saved").set(sum(one.saved for one in facts))
    metrics.planning.pair_error.set(_mean([error for one in facts for error in one.prediction_errors]))


def _mean(errors: Sequence[float]) -> float:
    return sum(errors) / len(errors) if errors else 0.0


def _measure_failing(metrics: JobMetrics, state: ClusterState) -> None:
    counts = Counter(failing.state.value for failing in state.failing.values())
    for word in FailingState:
        metrics.failing_nodes.labels(word.value.lower()).set(counts[word.value])


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


def _gain(job: JobView) -> tuple[float, float] | None:
    allocation = job.status.allocation
    if allocation is None or not allocation.steps_per_second or not allocation.proportional_steps_per_second:
        return None
    gpus = job.spec.gpus
    return gpus * allocation.steps_per_second / allocation.proportional_steps_per_second, float(gpus)


def _speed_gain(holding: Sequence[_Facts]) -> float:
    """1 where no speed is known."""
    gains = [one.gain for one in holding if one.gain is not None]
    weight = sum(gpus for _, gpus in gains)
    return sum(gained for gained, _ in gains) / weight if weight else 1.0


def _measure_queue(metrics: JobMetrics, waiting: Sequence[JobView]) -> None:
    metrics.queue_length.set(len(waiting))
    reasons = Counter(job.status.queue.reason if job.status.queue is not None else "" for job in waiting)
    _show(metrics.waiting, {(reason,): count for reason, count in reasons.items()})


def _measure_tenants(
    metrics: JobMetrics, facts: Sequence[_Facts], waiting: Sequence[_Facts], holding: Sequence[_Facts], now: float
) -> None:
    unfinished = Counter(one.tenant for one in facts if one.lives)
    held, wanted = Counter[str](), Counter[str]()
    for one in holding:
        held[one.tenant] += one.gpus
    oldest: dict[str, float] = {}
    for one in waiting:
        wanted[one.tenant] += one.gpus
        oldest[one.tenant] = max(oldest.get(one.tenant, 0.0), waiting_seconds(one.job, now))
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
