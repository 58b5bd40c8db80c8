"""Confidence intervals over seeds: of figures and of lines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, sqrt
from typing import Final, Self

import numpy as np

from synergy_simulator.report.chart import Chart, Line, Place

_LEVEL: Final = 0.95
_GRID: Final = 200
"""Places at which lines are compared that have their points at different ones."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with half the width of its 95 % confidence interval, by Student's t."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of at least two draws."""
        from scipy.special import stdtrit  # noqa: PLC0415 - takes 0.3 s, and only `--seeds` needs it

        count = len(values)
        mean = sum(values) / count
        variance = sum((value - mean) ** 2 for value in values) / (count - 1)
        return cls(mean, float(stdtrit(count - 1, (1 + _LEVEL) / 2)) * sqrt(variance / count))


def intervals_of(draws: Sequence[Mapping[str, float]]) -> dict[str, Interval]:
    """The interval of each figure that all draws have."""
    return {name: Interval.of([draw[name] for draw in draws]) for name in draws[0] if all(name in one for one in draws)}


def over_seeds(draws: Sequence[Sequence[Chart]]) -> list[Chart]:
    """The charts of the first draw with the means of all draws, and the intervals around them."""
    named = [_by_name(one) for one in draws]
    return [_chart(chart, [one[name] for one in named if name in one]) for name, chart in named[0].items()]


def _by_name(charts: Sequence[Chart]) -> dict[tuple[str, int], Chart]:
    """Charts by title, and by number among those that have the same."""
    seen: Counter[str] = Counter()
    found = {}
    for chart in charts:
        found[chart.title, seen[chart.title]] = chart
        seen[chart.title] += 1
    return found


def _chart(first: Chart, draws: Sequence[Chart]) -> Chart:
    lines = []
    for line in first.drawn:
        same = [one for chart in draws for one in chart.drawn if one.label == line.label]
        lines.append(_line(same, first) if len(same) > 1 else line)
    return replace(first, lines=lines)


def _line(draws: Sequence[Line], chart: Chart) -> Line:
    """The mean of some lines: point by point if they have the same places, else at places between."""
    places = [x for x, _ in draws[0].points]
    values = [[y for _, y in line.points] for line in draws]
    if any([x for x, _ in line.points] != places for line in draws[1:]):
        places = _grid(draws, log=chart.log_x)
        values = [_at(line.points, places) for line in draws]
    found = [Interval.of(at) for at in zip(*values, strict=True)]
    points = [(x, one.mean) for x, one in zip(places, found, strict=True)]
    least, most = min(map(min, values)), max(map(max, values))
    low, high = 0.0 if least >= 0 else -inf, chart.top if most <= chart.top else inf
    ends = [(max(low, one.mean - one.half), min(high, one.mean + one.half)) for one in found]
    return replace(draws[0], points=points, band=ends)


def _grid(draws: Sequence[Line], *, log: bool) -> list[float]:
    low = min(x for line in draws for x, _ in line.points)
    high = max(x for line in draws for x, _ in line.points)
    places = np.geomspace(low, high, _GRID) if log and low > 0 else np.linspace(low, high, _GRID)
    return [float(x) for x in places]


def _at(points: Sequence[Place], places: Sequence[float]) -> list[float]:
    """Heights of a line at some places; before its first point and after its last it is level."""
    ordered = points if all(one[0] <= following[0] for one, following in pairwise(points)) else sorted(points)
    return [float(y) for y in np.interp(places, [x for x, _ in ordered], [y for _, y in ordered])]
