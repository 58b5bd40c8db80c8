"""The report: one file, nothing loaded from elsewhere, figures that are those of the run."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from support.simulation import flat, server, simulated, traced
from synergy_simulator.engine.options import Options
from synergy_simulator.grid import Case, label_of, run_all
from synergy_simulator.report.chart import Line, line_chart, ticks
from synergy_simulator.report.gantt import gantt
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.report.page import page
from synergy_simulator.report.summary import Summary, summarize
from synergy_simulator.workloads.workload import build_workload

JOBS = [traced(f"<j{index}>", 40.0 * index, 100 + 30 * (index % 5), gpus=1 + index % 2) for index in range(20)]


@pytest.fixture
def summary() -> Summary:
    return summarize("a & b", simulated(JOBS, server(2, nodes=2), record=True))


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]


def test_the_page_needs_no_network_and_its_plots_are_well_formed(summary: Summary) -> None:
    html = page("title <x>", [summary, summary], note="5 < 6")
    loads = _Loads()
    loads.feed(html)
    assert loads.loaded == []
    assert "url(" not in html
    assert "@import" not in html
    assert "<script" not in html
    plots = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(plots) == 5 + 2
    for plot in plots:
        ElementTree.fromstring(plot)
    assert "a &amp; b" in html
    assert "title &lt;x&gt;" in html


def test_the_series_keeps_the_area_under_it(summary: Summary) -> None:
    outcome = simulated(JOBS, server(2, nodes=2), record=True)
    mean = sum(point.gpus for point in summary.points) / len(summary.points)
    assert mean == pytest.approx(metrics_of(outcome).gpu_utilization)
    assert max(point.waiting for point in summary.points) > 1
    assert all(0 <= point.gpus <= 1 + 1e-9 for point in summary.points)


def test_no_gpu_of_the_gantt_has_two_jobs_at_once(summary: Summary) -> None:
    boxes = []
    for box in ElementTree.fromstring(gantt(summary).partition("<p>")[0]).iter("rect"):
        x, y, width, height = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        boxes.append((x, x + width, y, y + height))
    assert len(boxes) > 10
    for index, (left, right, upper, lower) in enumerate(boxes):
        for other_left, other_right, other_upper, other_lower in boxes[:index]:
            beside = right <= other_left + 0.2 or other_right <= left + 0.2
            assert beside or lower <= other_upper or other_lower <= upper


def test_a_line_goes_where_its_points_are() -> None:
    chart = line_chart([Line("l", [(1, 0.0), (10, 0.5), (100, 1.0)])], title="t", x="x", y="y", log_x=True)
    (line,) = ElementTree.fromstring(chart).iter("polyline")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in line.attrib["points"].split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert y0 > y2


def test_ticks_are_round_numbers_within() -> None:
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(3, 27) == [5, 10, 15, 20, 25]


def test_an_empty_chart_says_so() -> None:
    assert "nothing to show" in line_chart([Line("l", [])], title="t", x="x", y="y")


def test_a_grid_on_several_processes_is_that_of_one() -> None:
    workload = build_workload(JOBS, flat(), server(2, nodes=2))
    grid = [Options.of(policy=policy, mechanism="proportional", record=True) for policy in ("fifo", "srtf")]
    told: list[int] = []
    cases = [Case(label_of(options), workload, options) for options in grid]
    many = run_all(cases, processes=2, progress=told.append)
    one = run_all(cases, processes=1)
    assert told == [1, 2]
    assert [(s.label, s.jcts) for s in many] == [(s.label, s.jcts) for s in one]
    assert [s.label for s in many] == ["fifo on proportional", "srtf on proportional"]
