"""The page: figures side by side, then the plots."""

from collections.abc import Sequence
from html import escape

from synergy_simulator.report.chart import Line, colour, line_chart
from synergy_simulator.report.gantt import gantt
from synergy_simulator.report.metrics import Metrics
from synergy_simulator.report.summary import Point, Summary

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1500px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 1.5rem; }
svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
svg text.title { font-size: 13px; font-weight: 600; }
.grid { stroke: var(--line); stroke-width: .6; }
.round { stroke: var(--line); stroke-width: .4; }
.key { display: inline-block; width: 1.2em; height: .25em; vertical-align: middle; margin-right: .4em; }
"""
_HOUR = 3600.0


def page(title: str, summaries: Sequence[Summary], note: str = "") -> str:
    """One HTML document that needs nothing else."""
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>",
            f"<p>{escape(note)}</p>" if note else "",
            figures_table(summaries),
            '<div class="plots">',
            *plots(summaries),
            "</div><h2>Who was where</h2>",
            '<div class="plots">',
            *(f"<section><h3>{escape(one.label)}</h3>{gantt(one)}</section>" for one in summaries),
            "</div></body></html>\n",
        ]
    )


def figures_table(summaries: Sequence[Summary]) -> str:
    """The figures side by side, as HTML."""
    head = "".join(
        f'<th><span class="key" style="background:{colour(index)}"></span>{escape(one.label)}</th>'
        for index, one in enumerate(summaries)
    )
    body = "".join(
        f"<tr><td>{escape(name)}</td>{''.join(f'<td>{escape(value)}</td>' for value in values)}</tr>"
        for name, values in figures([summary.metrics for summary in summaries])
    )
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"


def figures(runs: Sequence[Metrics]) -> list[tuple[str, list[str]]]:
    """The figures of some runs with their units, for reading: by name, one of each run."""
    unit, seconds = _unit(max(metrics.makespan_s for metrics in runs))
    return [
        ("jobs (measured)", [f"{m.jobs} ({m.measured})" for m in runs]),
        (f"average JCT, {unit}", [f"{m.avg_jct_s / seconds:.2f}" for m in runs]),
        (f"median JCT, {unit}", [f"{m.median_jct_s / seconds:.2f}" for m in runs]),
        (f"95th percentile JCT, {unit}", [f"{m.p95_jct_s / seconds:.2f}" for m in runs]),
        (f"99th percentile JCT, {unit}", [f"{m.p99_jct_s / seconds:.2f}" for m in runs]),
        (f"makespan, {unit}", [f"{m.makespan_s / seconds:.2f}" for m in runs]),
        (f"average time waiting, {unit}", [f"{m.avg_queue_s / seconds:.2f}" for m in runs]),
        ("average finish-time fairness", [f"{m.avg_ftf:.2f}" for m in runs]),
        ("worst finish-time fairness", [f"{m.worst_ftf:.2f}" for m in runs]),
        (
            "GPUs, CPUs, memory in use",
            [f"{m.gpu_utilization:.0%} / {m.cpu_utilization:.0%} / {m.memory_utilization:.0%}" for m in runs],
        ),
        ("preemptions", [f"{m.preemptions}" for m in runs]),
        ("cost", [f"{m.cost:.2f}" for m in runs]),
        ("missed SLOs", [f"{m.slo_violations}" for m in runs]),
        ("rounds", [f"{m.rounds}" for m in runs]),
        ("a plan, ms (99th percentile)", [f"{m.plan_mean_ms:.2f} ({m.plan_p99_ms:.2f})" for m in runs]),
        ("simulated in, s", [f"{m.wall_s:.2f}" for m in runs]),
        *([("estimates off by", [_off_by(m) for m in runs])] if any(m.estimates for m in runs) else []),
    ]


def _off_by(metrics: Metrics) -> str:
    error = metrics.estimate_error
    return "" if error is None else f"{error:.0%} in the mean of {metrics.estimates}"


def _unit(longest_s: float) -> tuple[str, float]:
    """A unit in which two digits behind the point tell short traces apart too, and its seconds."""
    return ("h", _HOUR) if longest_s >= 10 * _HOUR else ("min", 60.0) if longest_s >= 600.0 else ("s", 1.0)


def plots(summaries: Sequence[Summary]) -> list[str]:
    def over_time(title: str, y: str, *, top: float, of: str) -> str:
        lines = [Line(one.label, [(p.at_s / _HOUR, _value(p, of)) for p in one.points]) for one in summaries]
        return line_chart(lines, title=title, x="hours", y=y, top=top)

    cdf = [
        Line(
            one.label,
            [(max(jct, 1.0) / _HOUR, (rank + 1) / len(one.jcts)) for rank, jct in enumerate(one.jcts)],
        )
        for one in summaries
    ]
    return [
        line_chart(cdf, title="Job completion times", x="hours, logarithmic", y="part of jobs", log_x=True, top=1.0),
        over_time("Jobs that wait", "jobs", top=1.0, of="waiting"),
        over_time("GPUs in use", "part", top=1.0, of="gpus"),
        over_time("CPUs in use", "part", top=1.0, of="cpus"),
        over_time("Memory in use", "part", top=1.0, of="memory"),
    ]


def _value(point: Point, of: str) -> float:
    value: float = getattr(point, of)
    return value
