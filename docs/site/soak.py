"""Draw a soak's report: memory of each process, how long jobs take to start, and the load.

    python docs/site/soak.py REPORT [FOLDER]

Reads the JSON that `make soak` writes, and writes FOLDER/soak.svg (default: beside the report).
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from drawing import COLOURS, figure_in
from matplotlib.axes import Axes

_BINS: Final = 30
_SHARES: Final = {"p50": 0.5, "p99": 0.99}
_PALE: Final = "#94a3b8"
_LOAD_COLOURS: Final = {"asked for": _PALE, "training": COLOURS[0]}


def draw(report: Mapping[str, Any], out: Path) -> None:
    """Write the plots to `out`, one below the other, with the same time axis."""
    series, size = report["series"], report["soak"]
    with figure_in(out, width=7.5, height=8.0) as figure:
        figure.suptitle(f"{size['gpus']} GPUs, load {size['load']:.0%}; dotted: a process restarts or nodes fail")
        memory, starts, load = figure.subplots(3, 1, sharex=True)
        _memory(memory, series["memory_mb"])
        _starts(starts, series)
        _load(load, series["busy"], size["gpus"])
        for axes in (memory, starts, load):
            for one in report["disturbances"]:
                axes.axvline(one["at"] / 60, color=_PALE, linestyle=":", linewidth=0.8)
            axes.legend(frameon=False, fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14))
        load.set_xlabel("minutes since the first job")


def _memory(axes: Axes, processes: Mapping[str, Sequence[Sequence[float]]]) -> None:
    styles = ("-", "--")
    for index, (name, points) in enumerate(processes.items()):
        colour, style = COLOURS[index % len(COLOURS)], styles[index // len(COLOURS) % len(styles)]
        axes.plot([at / 60 for at, _ in points], [mb for _, mb in points], color=colour, linestyle=style, label=name)
    axes.set_ylabel("resident MB")
    axes.set_ylim(bottom=0)


def _starts(axes: Axes, series: Mapping[str, Any]) -> None:
    last = max((at for at, *_ in series["busy"]), default=1.0)
    for colour, (what, points) in zip(
        COLOURS, {"a job": series["starts"], "a bare pod": series["bare_pods"]}.items(), strict=False
    ):
        for (name, share), style in zip(_SHARES.items(), ("-", ":"), strict=True):
            binned = bins(points, last, share)
            xs, ys = [at / 60 for at, _ in binned], [value for _, value in binned]
            axes.plot(xs, ys, color=colour, linestyle=style, marker=".", label=f"{what}, {name}")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_ylabel("seconds to Running")


def bins(points: Sequence[Sequence[float]], last: float, share: float) -> list[tuple[float, float]]:
    """The nearest-rank percentile of the points in each thirtieth of the time, at its middle."""
    width = last / _BINS
    found = []
    for index in range(_BINS):
        values = sorted(value for at, value in points if index * width <= at < (index + 1) * width)
        if values:
            found.append(((index + 0.5) * width, values[max(0, math.ceil(share * len(values)) - 1)]))
    return found


def _load(axes: Axes, busy: Sequence[Sequence[float]], gpus: int) -> None:
    at = [moment / 60 for moment, *_ in busy]
    for place, (name, colour) in zip((2, 1), _LOAD_COLOURS.items(), strict=True):
        axes.plot(at, [100 * one[place] / gpus for one in busy], color=colour, label=name)
    axes.set_ylabel("GPUs, %")
    axes.set_ylim(0, 105)


def main(arguments: Sequence[str]) -> int:
    """Draw one report."""
    file = Path(arguments[0])
    folder = Path(arguments[1]) if len(arguments) > 1 else file.parent
    draw(json.loads(file.read_text(encoding="utf-8")), folder / f"{file.stem}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
