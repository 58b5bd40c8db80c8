"""The figures of simulations, for reading."""

from collections.abc import Callable, Sequence

from synergy_simulator.report.intervals import Interval, intervals_of
from synergy_simulator.report.metrics import Metrics
from synergy_simulator.report.summary import Summary

_HOUR = 3600.0


def figures_of(draws: Sequence[Sequence[Summary]]) -> list[tuple[str, list[str]]]:
    """The figures of some runs with their units, for reading; of several seeds means with their intervals."""
    if len(draws) == 1:
        return figures([one.metrics for one in draws[0]])
    found = [intervals_of([one.metrics.document() for one in run]) for run in zip(*draws, strict=True)]
    first = [one.metrics for one in draws[0]]
    unit, seconds = unit_of(max(metrics.makespan_s for metrics in first))
    rows = [
        (name.replace("UNIT", unit), [_of_seeds(run[key], seconds if key.endswith("_s") else scale) for run in found])
        for name, key, scale in _OF_SEEDS
        if not _unset(key, first)
    ]
    return [("seeds", [str(len(draws))] * len(first)), *rows]


_OF_SEEDS = (
    ("average JCT, UNIT", "avg_jct_s", 1.0),
    ("median JCT, UNIT", "median_jct_s", 1.0),
    ("95th percentile JCT, UNIT", "p95_jct_s", 1.0),
    ("99th percentile JCT, UNIT", "p99_jct_s", 1.0),
    ("makespan, UNIT", "makespan_s", 1.0),
    ("average time waiting, UNIT", "avg_queue_s", 1.0),
    ("average finish-time fairness", "avg_ftf", 1.0),
    ("worst finish-time fairness", "worst_ftf", 1.0),
    ("GPUs in use, %", "gpu_utilization", 0.01),
    ("CPUs in use, %", "cpu_utilization", 0.01),
    ("memory in use, %", "memory_utilization", 0.01),
    ("preemptions", "preemptions", 1.0),
    ("cost", "cost", 1.0),
    ("missed SLOs", "slo_violations", 1.0),
)
"""Names, fields of `Metrics` and units of the figures over several seeds."""


def _of_seeds(found: Interval, scale: float) -> str:
    return f"{found.mean / scale:.2f} ± {found.half / scale:.2f}"


def _unset(key: str, runs: Sequence[Metrics]) -> bool:
    """Whether a figure says nothing, since no input sets what it is of."""
    if key == "share_error":
        return not any(metrics.tenants for metrics in runs)
    if key == "cost":
        return not any(metrics.cost for metrics in runs)
    return key == "slo_violations" and not any(metrics.slo_jobs for metrics in runs)


def figures(runs: Sequence[Metrics]) -> list[tuple[str, list[str]]]:
    """The figures of some runs with their units, for reading: by name, one of each run; none of what was not set."""
    unit, seconds = unit_of(max(metrics.makespan_s for metrics in runs))
    some = any(m.jobs != m.measured for m in runs)
    rows: list[tuple[str, str, Callable[[Metrics], str]]] = [
        ("", "jobs (measured)" if some else "jobs", lambda m: f"{m.jobs} ({m.measured})" if some else f"{m.jobs}"),
        ("", f"average JCT, {unit}", lambda m: f"{m.avg_jct_s / seconds:.2f}"),
        ("", f"median JCT, {unit}", lambda m: f"{m.median_jct_s / seconds:.2f}"),
        ("", f"95th percentile JCT, {unit}", lambda m: f"{m.p95_jct_s / seconds:.2f}"),
        ("", f"99th percentile JCT, {unit}", lambda m: f"{m.p99_jct_s / seconds:.2f}"),
        ("", f"makespan, {unit}", lambda m: f"{m.makespan_s / seconds:.2f}"),
        ("", f"average time waiting, {unit}", lambda m: f"{m.avg_queue_s / seconds:.2f}"),
        ("", "average finish-time fairness", lambda m: f"{m.avg_ftf:.2f}"),
        ("", "worst finish-time fairness", lambda m: f"{m.worst_ftf:.2f}"),
        ("", "GPUs, CPUs, memory in use", _in_use),
        ("", "preemptions", lambda m: f"{m.preemptions}"),
        ("cost", "cost", lambda m: f"{m.cost:.2f}"),
        ("slo_violations", "missed SLOs", lambda m: f"{m.slo_violations} of {m.slo_jobs}"),
        (
            "share_error",
            "claims of tenants not met, %",
            lambda m: f"{100.0 * m.tenants.share_error:.2f}" if m.tenants else "",
        ),
        ("share_error", "Jain's index of tenants", lambda m: f"{m.tenants.jain:.3f}" if m.tenants else ""),
        ("", "rounds", lambda m: f"{m.rounds}"),
        ("", "a plan, ms (99th percentile)", lambda m: f"{m.plan_mean_ms:.2f} ({m.plan_p99_ms:.2f})"),
        ("", "simulated in, s", lambda m: f"{m.wall_s:.2f}"),
    ]
    found = [(name, [tell(metrics) for metrics in runs]) for key, name, tell in rows if not _unset(key, runs)]
    if any(m.estimates for m in runs):
        found.append(("estimates off by", [_off_by(m) for m in runs]))
    return found


def _in_use(metrics: Metrics) -> str:
    return f"{metrics.gpu_utilization:.0%} / {metrics.cpu_utilization:.0%} / {metrics.memory_utilization:.0%}"


def _off_by(metrics: Metrics) -> str:
    error = metrics.estimate_error
    return "" if error is None else f"{error:.0%} in the mean of {metrics.estimates}"


def unit_of(longest_s: float) -> tuple[str, float]:
    """A unit in which two decimals also distinguish short traces, and its seconds."""
    return ("h", _HOUR) if longest_s >= 10 * _HOUR else ("min", 60.0) if longest_s >= 600.0 else ("s", 1.0)
