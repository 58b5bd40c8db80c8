"""The figures of a day, of the cluster and of the simulator, by the same definitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from types import SimpleNamespace
from typing import Any, cast

from support.job.fake_training import Training
from support.shared_day.jobs import SPEEDS, trace
from support.shared_day.size import Size
from synergy_core.model.snapshot import Allocation
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.engine.tenancy import TenantFigures, TenantUsage
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.workloads.workload import build_workload

POLICY = {"policy": "2d-las", "mechanism": "proportional"}


@dataclass(frozen=True)
class Figures:
    """What came of a day."""

    avg_jct_s: float
    makespan_s: float
    share_error: float
    jain: float
    preemptions: int
    gpu_hours: Mapping[str, float] = field(default_factory=dict)
    """By tenant, those below it included."""


def simulated(size: Size, begin: float, *, start_s: float = 0.0, restart_s: float = 0.0) -> Figures:
    """The same jobs and tenants in the simulator, in the same rounds of Unix time."""
    workload = build_workload(trace(size, begin), SPEEDS, _cluster(size))
    options = Options.of(
        policy=POLICY["policy"],
        mechanism=POLICY["mechanism"],
        tenants=size.tenants(),
        round_s=float(size.round_s),
        start_overhead_s=start_s,
        preemption_overhead_s=restart_s,
    )
    found = metrics_of(simulate(workload, options))
    assert found.tenants is not None
    return _figures(found.avg_jct_s, found.makespan_s, found.preemptions, found.tenants)


def medians(days: Sequence[Figures]) -> Figures:
    """Of each figure the median."""
    return Figures(
        avg_jct_s=median(day.avg_jct_s for day in days),
        makespan_s=median(day.makespan_s for day in days),
        share_error=median(day.share_error for day in days),
        jain=median(day.jain for day in days),
        preemptions=round(median(day.preemptions for day in days)),
        gpu_hours={name: median(day.gpu_hours[name] for day in days) for name in days[0].gpu_hours},
    )


def measured(size: Size, jobs: Sequence[TraceJob], seen: Mapping[str, Training]) -> Figures:
    """Of what was seen of each job, by name."""
    ends = [seen[job.name].finished or float("inf") for job in jobs]
    return _figures(
        fmean(end - job.arrival_s for end, job in zip(ends, jobs, strict=True)),
        max(ends) - min(job.arrival_s for job in jobs),
        sum(max(0, len(one.spans) - 1) for one in seen.values()),
        _tenants(size, jobs, seen),
    )


def _figures(avg_jct_s: float, makespan_s: float, preemptions: int, tenants: TenantFigures) -> Figures:
    hours = {one.name: one.used for one in tenants.tenants}
    return Figures(avg_jct_s, makespan_s, tenants.share_error, tenants.jain, preemptions, hours)


def _cluster(size: Size) -> Cluster:
    return Cluster(
        tuple(
            SimulatedPool(
                name=gpu_type,
                gpu_type=gpu_type,
                nodes=nodes,
                gpus_per_node=size.gpus_per_node,
                cpus_per_node=64.0,
                memory_gib_per_node=256.0,
            )
            for gpu_type, nodes in size.nodes.items()
        )
    )


def _tenants(size: Size, jobs: Sequence[TraceJob], seen: Mapping[str, Training]) -> TenantFigures:
    """The simulator's integrals over what was seen: who held what, and who asked for what, at each moment."""
    running: dict[str, Any] = {}
    active: dict[str, Any] = {}
    usage = TenantUsage(size.tenants(), _cluster(size), cast(Any, running), cast(Any, active))
    changes: list[tuple[float, dict[str, Any], str, Any]] = []
    for job in jobs:
        one = seen[job.name]
        changes += [(job.arrival_s, active, job.name, _run(job, None)), (one.finished or 0.0, active, job.name, None)]
        for number, span in enumerate(one.spans):
            # a run that moves may have its new place before its old one is free
            name = f"{job.name}/{number}"
            changes += [(span.due, running, name, _run(job, span.gpu_type)), (span.until, running, name, None)]
    before = min(job.arrival_s for job in jobs)
    for moment, of, name, run in sorted(changes, key=lambda one: one[0]):
        usage.count(max(0.0, moment - before))
        before = max(before, moment)
        if run is None:
            of.pop(name, None)
        else:
            of[name] = run
    found = usage.figures()
    assert found is not None
    return found


def _run(job: TraceJob, gpu_type: str | None) -> SimpleNamespace:
    """What the integrals read of a simulated run."""
    place = None if gpu_type is None else Allocation(job=job.name, gpu_type=gpu_type, workers=())
    return SimpleNamespace(job=SimpleNamespace(running=place), task=SimpleNamespace(gpus=job.gpus, tenant=job.tenant))
