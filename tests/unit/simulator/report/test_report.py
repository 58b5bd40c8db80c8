"""The report: one file, nothing loaded from elsewhere, and charts whose data are those of the runs."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from typing import Any

import pytest

from support.simulator.simulation import flat, server, simulated, traced
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Segment
from synergy_simulator.grid import Case, label_of, run_all
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.report.document import html_document
from synergy_simulator.report.gantt import Gantt
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.report.page import compared, embedded, page
from synergy_simulator.report.summary import Summary, summarize
from synergy_simulator.runners.processes import Processes
from synergy_simulator.workloads.workload import build_workload
from synergy_view import assets

JOBS = [traced(f"<j{index}>", 40.0 * index, 100 + 30 * (index % 5), gpus=1 + index % 2) for index in range(20)]
LIBRARY = resources.files(assets).joinpath(assets.ECHARTS).read_text(encoding="utf-8")


def summary_of(label: str, policy: str = "fifo", **more: Any) -> Summary:
    return summarize(label, simulated(JOBS, server(2, nodes=2), policy=policy, record=True, **more))


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summary_of("a & b")


class _Page(HTMLParser):
    """What a page would load, the files it offers, its headings and its data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.files: dict[str, list[dict[str, str]]] = {}
        self.headings: list[str] = []
        self.drawn: list[dict[str, Any]] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._inside = found.get("id") or tag
        for name, value in attrs:
            head = "data:text/csv;base64,"
            if name == "href" and "download" in found and (value or "").startswith(head):
                text = base64.b64decode((value or "").removeprefix(head)).decode()
                self.files[found["download"] or ""] = list(csv.DictReader(io.StringIO(text)))
            elif name in ("src", "href", "srcset", "data", "action", "background", "poster"):
                self.loaded.append(value or "")

    def handle_data(self, data: str) -> None:
        if self._inside == "h2":
            self.headings.append(data)
        if self._inside == "drawn":
            self.drawn = json.loads(data)
        self._inside = ""


def test_the_page_needs_no_network(summary: Summary) -> None:
    html = page("title <x>", [[summary, summary]], note="5 < 6")
    assert _Page(html).loaded == []
    assert html.count(LIBRARY) == 1
    ours = html.replace(LIBRARY, "")
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", ours)
    assert "default-src &#x27;none&#x27;" in ours
    assert "a &amp; b" in ours
    assert "title &lt;x&gt;" in ours
    assert "5 &lt; 6" in ours


def test_names_of_jobs_cannot_end_the_script() -> None:
    html = html_document("t", [], [Chart([Line("</script><b>", [(0, 1)])], title="c", x="x", y="y")])
    assert "</script><b>" not in html
    assert _Page(html).drawn[0]["series"][0]["label"] == "</script><b>"


def test_a_policy_has_one_colour_in_all_charts() -> None:
    grid = [(policy, mechanism) for policy in ("fifo", "srtf") for mechanism in ("proportional", "tune")]
    summaries = [summary_of(f"{policy} on {how}", policy, mechanism=how) for policy, how in grid]
    drawn = [one for one in _Page(page("t", [summaries])).drawn if one["kind"] != "gantt"]
    assert len(drawn) == 6
    looks = [{one["label"]: (one["colour"], one["variant"]) for one in chart["series"]} for chart in drawn]
    assert all(look == looks[0] for look in looks)
    assert [looks[0][f"{policy} on {how}"] for policy, how in grid] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_of_one_policy_each_mechanism_has_its_colour(summary: Summary) -> None:
    charts = [Chart([Line(name, [(0, 1)], "fifo") for name in ("a", "b")], title="c", x="x", y="y")]
    assert [one["colour"] for one in _Page(html_document("t", [], charts)).drawn[0]["series"]] == [0, 1]
    many = [Line(f"l{index}", [(0, 1)]) for index in range(9)]
    series = _Page(html_document("t", [], [Chart(many, title="c", x="x", y="y")])).drawn[0]["series"]
    assert [(one["colour"], one["variant"]) for one in (series[0], series[7], series[8])] == [(0, 0), (7, 0), (0, 1)]


def test_titles_say_what_is_compared() -> None:
    summaries = [summary_of(f"{policy} on tune", policy, mechanism="tune") for policy in ("fifo", "srtf", "las")]
    html = page("T.csv on 4 GPUs", [summaries])
    assert compared(summaries) == "fifo, srtf and las on tune"
    assert "<h1>fifo, srtf and las on tune: T.csv on 4 GPUs</h1>" in html
    headings = _Page(html).headings
    assert headings[:2] == [
        "Job completion times: fifo, srtf and las on tune",
        "Distribution of job completion times: fifo, srtf and las on tune",
    ]
    assert all("on tune" in heading for heading in headings)
    lines = [Line(str(index), [(0, 1)]) for index in range(5)]
    assert Chart(lines, title="five", x="x", y="y").heading == "five: 5 series"
    assert Chart(lines[:2], title="Figure 1: a", x="x", y="y").heading == "Figure 1: a (0 and 1)"


def test_the_csv_has_what_is_plotted(summary: Summary) -> None:
    found = _Page(page("t", [[summary]]))
    assert len(found.files) == len(found.drawn) == 7
    assert all(name.endswith(".csv") for name in found.files)
    rows = dict(zip(found.headings, found.files.values(), strict=True))
    waiting = rows["Jobs that wait: a & b"]
    assert list(waiting[0]) == ["series", "hours", "jobs"]
    assert [[float(row["hours"]), float(row["jobs"])] for row in waiting] == found.drawn[2]["series"][0]["points"]
    bars = rows["Job completion times: a & b"]
    assert [row["figure"] for row in bars] == ["average", "median", "95th pct", "99th pct"]
    assert float(bars[0]["JCT, min"]) == pytest.approx(summary.metrics.avg_jct_s / 60, rel=1e-6)
    boxes = next(those for heading, those in rows.items() if heading.startswith("Which job ran where"))
    assert {row["job"] for row in boxes} == {segment.job for segment in summary.segments}
    assert len(boxes) == len(found.drawn[-1]["boxes"])


def test_intervals_have_columns_only_where_there_are_some() -> None:
    with_band = Line("a", [(1, 2.0)], band=[(1.5, 2.5)])
    chart = Chart([with_band, Line("b", [(1, 3.0)])], title="t", x="x", y="y")
    assert chart.csv() == "series,x,y,low,high\na,1.0,2.0,1.5,2.5\nb,1.0,3.0,,\n"
    assert Chart([Line("b", [(1, 3.0)])], title="t", x="x", y="y").csv() == "series,x,y\nb,1.0,3.0\n"


def test_what_cannot_be_drawn_is_left_out() -> None:
    chart = Chart([Line("a", [(0, 1.0), (1, float("nan")), (2, float("inf"))]), Line("b", [])], title="t", x="x", y="y")
    assert chart.csv() == "series,x,y\na,0.0,1.0\n"
    (drawn,) = _Page(html_document("t", [], [chart])).drawn
    assert [one["label"] for one in drawn["series"]] == ["a"]
    log = Chart([Line("a", [(0, 1.0)])], title="t", x="x", y="y", log_x=True)
    assert log.csv() == "series,x,y\na,0.001,1.0\n"


def test_the_series_keeps_the_area_under_it(summary: Summary) -> None:
    outcome = simulated(JOBS, server(2, nodes=2), record=True)
    mean = sum(point.gpus for point in summary.points) / len(summary.points)
    assert mean == pytest.approx(metrics_of(outcome).gpu_utilization)
    assert max(point.waiting for point in summary.points) > 1
    assert all(0 <= point.gpus <= 1 + 1e-9 for point in summary.points)


def test_no_lane_of_the_gantt_has_two_jobs_at_once(summary: Summary) -> None:
    drawn = Gantt(summary).document({})
    assert drawn["nodes"] == [[name, gpus] for name, gpus in summary.nodes]
    assert len(drawn["boxes"]) > 10
    lanes: dict[int, list[tuple[float, float]]] = {}
    for _, first, count, start, end in drawn["boxes"]:
        for lane in range(first, first + count):
            lanes.setdefault(lane, []).append((start, end))
    assert set(lanes) <= set(range(4))
    for spans in lanes.values():
        spans.sort()
        assert all(one[1] <= following[0] + 1e-6 for one, following in pairwise(spans))


def test_a_job_on_gpus_apart_has_a_box_for_each(summary: Summary) -> None:
    node = summary.nodes[0][0]
    times = {"a": (0, 9, 1), "b": (0, 5, 1), "c": (0, 9, 1), "d": (0, 5, 1), "e": (5, 9, 2)}
    segments = tuple(Segment(job, node, gpus, start, end) for job, (start, end, gpus) in times.items())
    gantt = Gantt(_with(summary, segments, ((node, 4),)))
    assert [(box.segment.job, box.lane, box.lanes) for box in gantt.boxes()[node]] == [
        ("a", 0, 1), ("b", 1, 1), ("c", 2, 1), ("d", 3, 1), ("e", 1, 1), ("e", 3, 1),
    ]  # fmt: skip


def test_jobs_that_share_a_gpu_have_a_lane_each(summary: Summary) -> None:
    node = summary.nodes[0][0]
    shared = tuple(Segment(job, node, 1, 0.0, 9.0) for job in ("a", "b"))
    assert Gantt(_with(summary, shared, ((node, 1),))).document({})["nodes"] == [[node, 2]]


def test_many_nodes_are_told_not_drawn(summary: Summary) -> None:
    nodes = tuple((f"n{index}", 8) for index in range(40))
    gantt = Gantt(_with(summary, (), nodes))
    assert len(gantt.document({})["nodes"]) == 32
    assert "8 more nodes are left out." in html_document("t", [], [gantt])


def _with(summary: Summary, segments: tuple[Segment, ...], nodes: tuple[tuple[str, int], ...]) -> Summary:
    return replace(summary, segments=segments, nodes=nodes, window=(0.0, 9.0))


def test_inside_another_page_it_has_a_frame(summary: Summary) -> None:
    html = embedded([[summary]])
    assert html.startswith('<iframe title="a &amp; b"')
    assert html.count("<") == 2


def test_a_grid_on_several_processes_is_that_of_one() -> None:
    workload = build_workload(JOBS, flat(), server(2, nodes=2))
    grid = [Options.of(policy=policy, mechanism="proportional", record=True) for policy in ("fifo", "srtf")]
    told: list[int] = []
    cases = [Case(label_of(options), workload, options) for options in grid]
    many = run_all(cases, runner=Processes(2), progress=told.append)
    one = run_all(cases, runner=Processes(1))
    assert told == [1, 2]
    assert [(s.label, s.jcts) for s in many] == [(s.label, s.jcts) for s in one]
    assert [s.label for s in many] == ["fifo on proportional", "srtf on proportional"]
