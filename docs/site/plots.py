"""Draw the plots of docs/reproductions from the JSON that `kube-synergy reproduce NAME --json` prints.

    python docs/site/plots.py [RESULTS [FOLDER]]

Reads each RESULTS/NAME.json (default: docs/reproductions/results) and writes FOLDER/NAME.svg (default:
docs/reproductions). The same results give the same bytes.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from drawing import COLOURS, figure_in
from matplotlib.axes import Axes

PAGES: Final = Path(__file__).parents[1] / "reproductions"
PAPER: Final = "#111111"
"""Of the marks that show what the paper prints."""
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the result's rows: its place, and which of the numbers in a cell counts."""

    place: int
    number: int = 0

    def of(self, row: Sequence[str]) -> float | None:
        """The number in this row; None where the cell has none."""
        found = _NUMBER.findall(row[self.place])
        return float(found[self.number]) if len(found) > self.number else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes: our figures as lines or bars, and the paper's as marks."""

    y: str
    ours: Mapping[str, Column]
    papers: Mapping[str, Column] = field(default_factory=dict)
    """The column that has the paper's figure for a series of `ours`."""
    printed: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """Points (x, y) that the paper prints and the rows lack, for a series of `ours`."""
    x: str = ""
    """With a name for the x axis the first column is numeric, and the series are lines."""
    labels: Sequence[int] = (0,)
    """The columns that name a row."""
    rows: str = ""
    """A pattern: only rows whose name matches."""
    log: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """The panels of one reproduction, side by side."""

    panels: Sequence[Panel]
    title: str


def _relative(names: Sequence[str], logarithmic: str = "") -> list[Panel]:
    """A panel for each column. `logarithmic` is the name of one with figures of different magnitudes."""
    return [
        Panel(
            y=name,
            ours={"ours": Column(1 + place)},
            papers={"ours": Column(4 + place)},
            log=name == logarithmic,
        )
        for place, name in enumerate(names)
    ]


_THREE: Final = ("average JCT, relative", "median JCT, relative", "95th percentile, relative")
_MODES: Final = ("none", "thesis", "thesis-fractions", "gavel", "auto")

PLOTS: Final[Mapping[str, Plot]] = {
    "synergy-fig6": Plot(
        [
            Panel(
                y="average JCT, hours",
                ours={"proportional": Column(1), "tune": Column(2)},
                papers={"proportional": Column(4), "tune": Column(5)},
                rows="^(srtf|las|fifo), average",
            )
        ],
        "Synergy, figure 6: Philly jobs, average JCT by policy",
    ),
    "synergy-fig9": Plot(
        [
            Panel(
                x="jobs per hour",
                y="average JCT, hours",
                ours={"proportional": Column(2), "tune": Column(3)},
                printed={"proportional": [(9, 81)], "tune": [(9, 22)]},
            )
        ],
        "Synergy, figure 9: FIFO, jobs of one GPU",
    ),
    "synergy-fig12": Plot(
        [Panel(x="CPUs per GPU", y="gain of tune, times", ours={"gain": Column(3)}, papers={"gain": Column(4)})],
        "Synergy, figure 12: FIFO at 9 jobs/h",
    ),
    "gavel-table3": Plot(
        [
            Panel(
                y=name,
                ours={"simulated": Column(3)},
                papers={"simulated": Column(4, 1)},
                labels=(0, 1),
                rows=rows,
            )
            for name, rows in (("average JCT, hours", "^continuous"), ("makespan, hours", "^static, Ga"))
        ],
        "Gavel, table 3: the physical cluster's traces",
    ),
    "tiresias-table1": Plot(_relative(_THREE), "Tiresias, table 1: relative to SRSF"),
    "tiresias-table5": Plot(_relative(_THREE, _THREE[1]), "Tiresias, table 5: relative to Tiresias-L"),
    "colocation-best": Plot(
        [
            Panel(y="makespan, relative to FIFO", ours={"ours": Column(1)}, papers={"ours": Column(2)}),
            Panel(y="JCT from a job's start, relative", ours={"ours": Column(3)}, papers={"ours": Column(4)}),
        ],
        "Co-location thesis, best case",
    ),
    "colocation-modes": Plot(
        [
            Panel(
                y="average JCT, hours",
                ours={mode: Column(3 + place) for place, mode in enumerate(_MODES)},
                labels=(0, 1, 2),
                rows=", 2$",
            )
        ],
        "Who shares a GPU, on three GPU types",
    ),
}
"""What is drawn of a result. A reproduction that is not here has no plot."""


def draw(result: Mapping[str, Any], out: Path) -> None:
    """Write the plot of one result to `out`."""
    plot = PLOTS[result["name"]]
    with figure_in(out, width=max(5.2, 3.1 * len(plot.panels)), height=3.2) as figure:
        figure.suptitle(f"{plot.title}\n{_how(result)}", fontsize=9)
        for axes, panel in zip(figure.subplots(1, len(plot.panels), squeeze=False)[0], plot.panels, strict=True):
            _panel(axes, panel, result["rows"])


def _how(result: Mapping[str, Any]) -> str:
    size = "quick run" if result["quick"] else "full run"
    tables = "the authors' tables" if result["data"] else "our own models and traces"
    return f"{size}, {tables}, seed {result['seed']}"


def _panel(axes: Axes, panel: Panel, every: Sequence[Sequence[str]]) -> None:
    rows = [row for row in every if not panel.rows or re.search(panel.rows, _name(row, panel))]
    if not rows:
        raise ValueError(f"no row of the result matches {panel.rows!r}")
    if panel.x:
        _lines(axes, panel, rows)
    else:
        _bars(axes, panel, rows)
    axes.set_ylabel(panel.y)
    if panel.log:
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        room = 1.15 if len(panel.ours) < 3 else 1.3  # for the legend
        axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * room)
    if len(panel.ours) > 1 or panel.papers or panel.printed:
        axes.legend(frameon=False, fontsize=8, ncols=1 if len(panel.ours) < 3 else 3)


def _name(row: Sequence[str], panel: Panel) -> str:
    return ", ".join(row[place] for place in panel.labels)


def _lines(axes: Axes, panel: Panel, rows: Sequence[Sequence[str]]) -> None:
    first = True
    for colour, (label, column) in zip(COLOURS, panel.ours.items(), strict=False):
        points = _points(rows, column)
        axes.plot([at for at, _ in points], [value for _, value in points], color=colour, marker="o", label=label)
        printed = [*panel.printed.get(label, ()), *_points(rows, panel.papers.get(label))]
        if printed:
            xs, ys = zip(*printed, strict=True)
            named = "the paper" if first else None
            axes.plot(xs, ys, marker="x", linestyle="none", color=PAPER, markeredgewidth=1.5, label=named)
            first = False
    axes.set_xlabel(panel.x)


def _points(rows: Sequence[Sequence[str]], column: Column | None) -> list[tuple[float, float]]:
    """(x, y) of the rows that have a figure there."""
    if column is None:
        return []
    both = [(Column(0).of(row), column.of(row)) for row in rows]
    return [(at, value) for at, value in both if at is not None and value is not None]


def _bars(axes: Axes, panel: Panel, rows: Sequence[Sequence[str]]) -> None:
    width = 0.8 / len(panel.ours)
    first = True
    for place, (label, column) in enumerate(panel.ours.items()):
        at = [index + (place - (len(panel.ours) - 1) / 2) * width for index in range(len(rows))]
        values = [column.of(row) for row in rows]
        axes.bar(at, [value or 0.0 for value in values], width * 0.92, color=COLOURS[place], label=label)
        papers = panel.papers.get(label)
        marks = [] if papers is None else [(x, papers.of(row)) for x, row in zip(at, rows, strict=True)]
        there = [(x, value) for x, value in marks if value is not None]
        if there:
            xs, ys = zip(*there, strict=True)
            axes.plot(
                xs, ys, color=PAPER, marker="_", markersize=16, markeredgewidth=2, linestyle="none",
                label="the paper" if first else None,
            )  # fmt: skip
            first = False
    axes.set_xticks(range(len(rows)), [_name(row, panel).replace(", ", ",\n") for row in rows], fontsize=7)
    if len(rows) > 3:
        axes.tick_params(axis="x", labelrotation=30)


def main(arguments: Sequence[str]) -> int:
    """Draw all results that have a plot."""
    results = Path(arguments[0]) if arguments else PAGES / "results"
    out = Path(arguments[1]) if len(arguments) > 1 else PAGES
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]
    for result in found:
        if result["name"] in PLOTS:
            draw(result, out / f"{result['name']}.svg")
    if not found:
        print(f"{results}: there are no results", file=sys.stderr)  # noqa: T201 - a command
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
