"""The figures of a simulation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.run import Run
from synergy_simulator.engine.tenancy import TenantFigures

PER_JOB_COLUMNS = ("job_id", "arrival_s", "start_s", "finish_s", "jct_s", "queue_s", "gpu_s", "preemptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Figures of one run. JCTs, queueing, fairness, SLOs and preemptions are of the measured jobs, the rest of all."""

    jobs: int
    """Jobs that arrived."""
    measured: int
    avg_jct_s: float
    median_jct_s: float
    p95_jct_s: float
    p99_jct_s: float
    makespan_s: float
    """From the first arrival to the last end."""
    avg_queue_s: float
    """Time in which a job held no GPU."""
    avg_ftf: float
    """JCT over what it would be with an n-th of the cluster for each of the n jobs that were there meanwhile."""
    p95_ftf: float
    worst_ftf: float
    gpu_utilization: float
    cpu_utilization: float
    memory_utilization: float
    """Parts of the cluster that were given to jobs."""
    preemptions: int
    cost: float
    """GPU-hours that jobs held, at the pool's price."""
    slo_violations: int
    rounds: int
    plan_mean_ms: float
    plan_p99_ms: float
    wall_s: float
    estimates: int = 0
    """Times that a job ran by an estimated speed until the real one was known."""
    estimate_error: float | None = None
    """How far these were off, relative to the real speed, in the mean; None where there was none."""
    slo_jobs: int = 0
    """Measured jobs that have an SLO."""
    tenants: TenantFigures | None = None
    """What tenants had; None where none has a guarantee or a limit."""

    def document(self) -> dict[str, Any]:
        """As JSON; without the estimates' error where there was none."""
        found = asdict(self)
        del found["estimates"], found["slo_jobs"]
        if self.estimate_error is None:
            del found["estimate_error"]
        del found["tenants"]
        if self.tenants is not None:
            found |= {"share_error": self.tenants.share_error, "jain_index": self.tenants.jain}
        return found

    def tenants_document(self) -> dict[str, Any]:
        """GPU-hours of each tenant as JSON; nothing where none has a guarantee or a limit."""
        return {} if self.tenants is None else {"tenants": [asdict(one) for one in self.tenants.tenants]}


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job that is done."""

    job_id: str
    arrival_s: float
    start_s: float
    finish_s: float
    jct_s: float
    queue_s: float
    gpu_s: float
    preemptions: int


def job_rows(outcome: Outcome) -> list[JobRow]:
    """The jobs that are done, by arrival."""
    return [_row(run) for run in outcome.runs if run.finish_s is not None]


def _row(run: Run) -> JobRow:
    task, finish = run.task, run.finish_s or 0.0
    jct = finish - task.arrival_s
    start = run.start_s if run.start_s is not None else finish
    return JobRow(task.name, task.arrival_s, start, finish, jct, max(0.0, jct - run.held_s), run.gpu_s, run.preemptions)


def measured_runs(outcome: Outcome) -> list[Run]:
    """The jobs of the measured window that are done."""
    first, last = outcome.options.measure or (0, len(outcome.runs))
    return [run for run in outcome.runs[first:last] if run.finish_s is not None]


def metrics_of(outcome: Outcome) -> Metrics:
    """The figures of a simulation in which at least one measured job ended."""
    runs = measured_runs(outcome)
    rows = [_row(run) for run in runs]
    jcts = np.array([row.jct_s for row in rows])
    finished = [run.finish_s for run in outcome.runs if run.finish_s is not None]
    gpus, cpus, memory = outcome.usage.utilization(outcome.first_s)
    fairness = [fairness_of(run, outcome) for run in runs]
    plan_ms = np.array(outcome.plan_s or [0.0]) * 1000.0
    return Metrics(
        jobs=len(outcome.runs),
        measured=len(rows),
        avg_jct_s=float(jcts.mean()),
        median_jct_s=float(np.median(jcts)),
        p95_jct_s=float(np.percentile(jcts, 95)),
        p99_jct_s=float(np.percentile(jcts, 99)),
        makespan_s=max(finished) - outcome.first_s,
        avg_queue_s=_mean([row.queue_s for row in rows]),
        avg_ftf=_mean(fairness),
        p95_ftf=float(np.percentile(fairness, 95)),
        worst_ftf=max(fairness),
        gpu_utilization=gpus,
        cpu_utilization=cpus,
        memory_utilization=memory,
        preemptions=sum(row.preemptions for row in rows),
        cost=outcome.usage.cost,
        slo_violations=sum(_is_late(run) for run in runs),
        rounds=outcome.rounds,
        plan_mean_ms=float(plan_ms.mean()),
        plan_p99_ms=float(np.percentile(plan_ms, 99)),
        wall_s=outcome.wall_s,
        tenants=None if outcome.usage.tenants is None else outcome.usage.tenants.figures(),
        slo_jobs=sum(run.task.slo_s is not None for run in runs),
        estimates=len(outcome.estimate_errors),
        estimate_error=_mean(outcome.estimate_errors) if outcome.estimate_errors else None,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def fairness_of(run: Run, outcome: Outcome) -> float:
    """Finish-time fairness rho = T_shared / T_independent, the latter on 1/n of the cluster (Synergy, section 2)."""
    jct = (run.finish_s or 0.0) - run.task.arrival_s
    before, after = outcome.contention_s[run.task.name]
    contention = (after - before) / jct if jct > 0 else 1.0
    return jct / (run.task.alone_s * contention)


def _is_late(run: Run) -> bool:
    slo = run.task.slo_s
    return slo is not None and run.finish_s is not None and run.finish_s - run.task.arrival_s > slo
