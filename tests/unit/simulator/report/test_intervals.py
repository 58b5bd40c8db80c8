"""Confidence intervals over seeds, of figures and of charts."""

import math

import pytest
from scipy import stats

from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.report.intervals import Interval, intervals_of, over_seeds


def test_the_interval_is_students() -> None:
    values = [3.0, 4.5, 5.0, 9.0]
    found = Interval.of(values)
    low, high = stats.t.interval(0.95, 3, loc=5.375, scale=stats.sem(values))
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((low, high))
    assert Interval.of([2.0, 2.0]) == Interval(2.0, 0.0)


def test_figures_that_some_draw_lacks_have_none() -> None:
    assert intervals_of([{"a": 1.0, "b": 1.0}, {"a": 3.0}]) == {"a": Interval.of([1.0, 3.0])}


def _chart(*lines: Line, **more: object) -> Chart:
    return Chart(lines, title="t", x="x", y="y", **more)  # type: ignore[arg-type]


def test_lines_with_the_same_places_are_averaged_there() -> None:
    draws = [[_chart(Line("a", [(1, value), (5, 2 * value)], "group"))] for value in (10.0, 20.0)]
    (chart,) = over_seeds(draws)
    (line,) = chart.lines
    assert (line.points, line.group) == ([(1, 15.0), (5, 30.0)], "group")
    half = Interval.of([10.0, 20.0]).half
    assert line.band[0] == (max(0.0, 15.0 - half), 15.0 + half)


def test_lines_with_places_apart_are_averaged_between() -> None:
    draws = [[_chart(Line("a", [(0.0, 0.0), (10.0, 10.0)]))], [_chart(Line("a", [(0.0, 2.0), (20.0, 2.0)]))]]
    (line,) = over_seeds(draws)[0].lines
    assert len(line.points) == 200
    assert (line.points[0], line.points[-1]) == ((0.0, 1.0), (20.0, 6.0))
    middle = min(line.points, key=lambda point: abs(point[0] - 5.0))
    assert middle[1] == pytest.approx((middle[0] + 2.0) / 2)


def test_on_a_logarithmic_axis_places_are_logarithmic() -> None:
    draws = [[_chart(Line("a", [(0.01, 0.5), (x, 1.0)]), log_x=True, top=1.0)] for x in (1.0, 100.0)]
    (line,) = over_seeds(draws)[0].lines
    places = [x for x, _ in line.points]
    assert places[1] / places[0] == pytest.approx(places[-1] / places[-2])


def test_an_interval_stays_where_values_can_be() -> None:
    """Of parts of one none is below 0 or above 1, of a difference one may be."""
    (parts,) = over_seeds([[_chart(Line("a", [(0, value)]), top=1.0)] for value in (0.0, 1.0)])[0].lines
    assert parts.band == [(0.0, 1.0)]
    (free,) = over_seeds([[_chart(Line("a", [(0, value)]))] for value in (-1.0, 1.0)])[0].lines
    assert free.band[0][0] < -1 < 1 < free.band[0][1]
    assert all(map(math.isfinite, free.band[0]))


def test_charts_of_one_title_stay_apart_and_what_one_seed_has_stays() -> None:
    first = [_chart(Line("a", [(0, 1.0)])), _chart(Line("a", [(0, 100.0)]), Line("only", [(0, 7.0)]))]
    second = [_chart(Line("a", [(0, 3.0)])), _chart(Line("a", [(0, 300.0)]))]
    left, right = over_seeds([first, second])
    assert left.lines[0].points == [(0, 2.0)]
    assert right.lines[0].points == [(0, 200.0)]
    assert (right.lines[1].points, right.lines[1].band) == ([(0, 7.0)], ())
