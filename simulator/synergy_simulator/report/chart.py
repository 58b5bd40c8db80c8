"""Charts as data: what a page draws and what its CSV has."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import isfinite
from typing import Any, Final

from synergy_simulator.report.csv_text import csv_text
from synergy_simulator.report.styles import Style

Place = tuple[float, float]
_LEAST_LOG: Final = 1e-3
_MOST_NAMES: Final = 4
"""Series that a title names; of more it says how many there are."""


@dataclass(frozen=True, slots=True)
class Line:
    """A named line through points (x, y)."""

    label: str
    points: Sequence[Place]
    group: str = ""
    """Lines of one group have one colour and differ in dashes and markers, for example a policy's."""
    band: Sequence[Place] = ()
    """Lower and upper end of the confidence interval of each point; empty: there is none."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over a common x axis; with `categories`, bars: the x of a point is then the index of its category."""

    lines: Sequence[Line]
    _: KW_ONLY
    title: str
    x: str
    y: str
    log_x: bool = False
    top: float = 0.0
    """The least that the y axis reaches; where no value is above it, the largest that there can be."""
    categories: Sequence[str] = ()
    compares: str = ""
    """What is compared, where that is shorter than the names of all lines."""

    @property
    def drawn(self) -> list[Line]:
        """The lines that have points."""
        return [line for line in self.lines if line.points]

    @property
    def heading(self) -> str:
        """The title with what is compared."""
        names = [line.label for line in self.drawn]
        if not names:
            return self.title
        told = self.compares or (listed(names) if len(names) <= _MOST_NAMES else f"{len(names)} series")
        return f"{self.title} ({told})" if ":" in self.title else f"{self.title}: {told}"

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Group and label of each line that is drawn."""
        return [(line.group or line.label, line.label) for line in self.drawn]

    def document(self, styles: Mapping[str, Style]) -> dict[str, Any]:
        """What the page's script draws."""
        return {
            "kind": "bars" if self.categories else "lines",
            "x": self.x,
            "y": self.y,
            "log": self.log_x,
            "top": self.top,
            "categories": list(self.categories),
            "series": [self._series(line, styles[line.label]) for line in self.drawn],
        }

    def _series(self, line: Line, style: Style) -> dict[str, Any]:
        rows = self._rows(line)
        return {
            "label": line.label,
            "colour": style.colour,
            "variant": style.variant,
            "points": [row[:2] for row in rows],
            "band": [row[2:] for row in rows] if line.band else [],
        }

    def csv(self) -> str:
        """What is plotted, a row for each point. Columns of intervals are there if a line has them."""
        bands = any(line.band for line in self.drawn)
        header = ["series", self.x, self.y, *(("low", "high") if bands else ())]
        rows = []
        for line in self.drawn:
            for x, *values in self._rows(line):
                at = self.categories[int(x)] if self.categories else x
                rows.append([line.label, at, *values, *([""] * (len(header) - 2 - len(values)))])
        return csv_text(header, rows)

    def _rows(self, line: Line) -> list[list[float]]:
        """x, y, and where there is an interval its ends, of all points that can be drawn."""
        least = _LEAST_LOG if self.log_x else float("-inf")
        rows = [[max(least, x), y] for x, y in line.points]
        if line.band:
            rows = [[*row, *ends] for row, ends in zip(rows, line.band, strict=True)]
        return [[shortened(value) for value in row] for row in rows if all(map(isfinite, row))]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shortened(value: float) -> float:
    """A number of at most seven digits: a page is read, not computed with."""
    return float(f"{value:.7g}")
