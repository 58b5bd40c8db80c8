"""The page: figures side by side, then the charts."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

from synergy_simulator.report.chart import Chart, Line, listed
from synergy_simulator.report.document import Figure, html_document, page_styles
from synergy_simulator.report.figures import figures_of, unit_of
from synergy_simulator.report.gantt import Gantt
from synergy_simulator.report.html_table import html_table
from synergy_simulator.report.intervals import over_seeds
from synergy_simulator.report.styles import Style
from synergy_simulator.report.summary import Point, Summary

_HOUR = 3600.0


def page(title: str, draws: Sequence[Sequence[Summary]], note: str = "") -> str:
    """One HTML document that needs nothing else.

    Args:
        title: what the simulations have in common, for example the trace and the cluster.
        draws: the simulations; of several seeds the same simulations for each.
        note: a sentence above the figures.
    """
    first = draws[0]
    drawn: list[Figure] = [*charts(draws), *(Gantt(one) for one in first)]
    above = [f"<p>{escape(text)}</p>" for text in (note, seeds_note(len(draws))) if text]
    return html_document(f"{compared(first)}: {title}", [*above, figures_table(draws, page_styles(drawn))], drawn)


def embedded(draws: Sequence[Sequence[Summary]]) -> str:
    """The figures and the charts inside another page, such as a notebook's: in a frame of their own."""
    drawn = charts(draws)
    title = compared(draws[0])
    document = html_document(title, [figures_table(draws, page_styles(drawn))], drawn)
    style = "width:100%;height:600px;border:0"
    return f'<iframe title="{escape(title)}" style="{style}" srcdoc="{escape(document)}"></iframe>'


def seeds_note(count: int) -> str:
    """What several seeds mean for the figures; empty for one."""
    if count < 2:
        return ""
    return (
        f"Figures and lines are means of {count} seeds. Behind ± and in bands: the 95 % confidence interval of the "
        "mean. Which job ran where is of the first seed."
    )


def compared(summaries: Sequence[Summary]) -> str:
    """What is compared, in words: policies and mechanisms."""
    if len(summaries) == 1:
        return summaries[0].label
    policies = list(dict.fromkeys(one.policy for one in summaries))
    mechanisms = list(dict.fromkeys(one.mechanism for one in summaries))
    if len(policies) * len(mechanisms) == len(summaries):
        return f"{listed(policies)} on {listed(mechanisms)}"
    return listed([one.label for one in summaries])


def figures_table(draws: Sequence[Sequence[Summary]], styles: Mapping[str, Style]) -> str:
    """The figures side by side, as HTML."""
    header = ["", *(one.label for one in draws[0])]
    keys = [None, *(styles[one.label].colour if one.label in styles else None for one in draws[0])]
    rows = [(name, *values) for name, values in figures_of(draws)]
    return html_table(header, rows, keys=keys)


def charts(draws: Sequence[Sequence[Summary]]) -> list[Chart]:
    """The charts of some simulations; of several seeds their means with bands around them."""
    found = [_charts(one) for one in draws]
    return found[0] if len(found) == 1 else over_seeds(found)


def _charts(summaries: Sequence[Summary]) -> list[Chart]:
    what = compared(summaries)

    def over_time(title: str, y: str, value: Callable[[Point], float], top: float = 1.0) -> Chart:
        lines = [_line(one, [(p.at_s / _HOUR, value(p)) for p in one.points]) for one in summaries]
        return Chart(lines, title=title, x="hours", y=y, top=top, compares=what)

    return [
        _jcts(summaries, what),
        _distribution(summaries, what),
        over_time("Jobs that wait", "jobs", lambda point: point.waiting, top=0.0),
        over_time("GPUs in use", "part of the cluster", lambda point: point.gpus),
        over_time("CPUs in use", "part of the cluster", lambda point: point.cpus),
        over_time("Memory in use", "part of the cluster", lambda point: point.memory),
    ]


def _jcts(summaries: Sequence[Summary], what: str) -> Chart:
    """The JCTs of the figures, as bars."""
    unit, seconds = unit_of(max(one.metrics.makespan_s for one in summaries))
    names = ("average", "median", "95th pct", "99th pct")
    lines = []
    for one in summaries:
        of = one.metrics
        values = (of.avg_jct_s, of.median_jct_s, of.p95_jct_s, of.p99_jct_s)
        lines.append(_line(one, [(float(at), value / seconds) for at, value in enumerate(values)]))
    y = f"JCT, {unit}"
    return Chart(lines, title="Job completion times", x="figure", y=y, categories=names, compares=what)


def _distribution(summaries: Sequence[Summary], what: str) -> Chart:
    """The part of jobs that took so long at most."""
    lines = [
        _line(one, [(max(jct, 1.0) / _HOUR, (rank + 1) / len(one.jcts)) for rank, jct in enumerate(one.jcts)])
        for one in summaries
    ]
    title = "Distribution of job completion times"
    return Chart(lines, title=title, x="hours, logarithmic", y="part of jobs", log_x=True, top=1.0, compares=what)


def _line(summary: Summary, points: Sequence[tuple[float, float]]) -> Line:
    """Of a simulation: its policy has one colour on all mechanisms."""
    return Line(summary.label, points, summary.policy)
