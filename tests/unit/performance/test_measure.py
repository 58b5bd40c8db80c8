"""A ratio of processor time, when it is measured again, and what a run of `performance` says."""

import json
from pathlib import Path

import pytest

from performance import __main__ as command
from performance.case import Case, ratio
from performance.declared import Declared, Range
from performance.figures import of_processes
from performance.measure import ATTEMPTS, Measured, measure, nearest

DECLARED = Declared("plan-round", {}, Range(1.0, 2.0))
REPORT = {
    "binding": {"ratio": 0.9, "ratio_to_bare": 1.2},
    "reconcile": {"reconciled_s": 6.0, "operator_mb": 150.0},
    "reconcile_bare": {"reconciled_s": 4.0, "operator_mb": 100.0},
    "filter_quiet": {"p99_ms": 3.0},
    "filter_bare": {"p99_ms": 2.0},
    "scale": [{"start_s": 9.0, "pod_start_s": 1.0}, {"start_s": 2.0, "pod_start_s": 0.5}],
    "hand_over": [{"lost": 1, "doubled": 0}, {"lost": 0, "doubled": 2}],
}


def counted(turns: int) -> Case:
    return Case(lambda: sum(range(turns * 20_000)), lambda: sum(range(20_000)))


@pytest.mark.parametrize("times", [1, 8])
def test_a_ratio_is_of_the_work_that_is_done(times: int) -> None:
    assert times / 2 < ratio(counted(times), 5) < times * 2


def test_what_is_in_its_range_is_measured_once() -> None:
    assert nearest(DECLARED, lambda: 1.5) == Measured(DECLARED, 1.5, 1)


def test_what_is_out_of_its_range_is_measured_again() -> None:
    told = iter([5.0, 1.2])
    assert nearest(DECLARED, lambda: next(told)) == Measured(DECLARED, 1.2, 2)


def test_what_stays_out_of_its_range_has_its_nearest_ratio() -> None:
    told = iter([0.2, 9.0, 2.5])
    found = nearest(DECLARED, lambda: next(told))
    assert found == Measured(DECLARED, 2.5, ATTEMPTS)
    assert not found.within


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("bound-per-second", 0.9), ("bound-per-second-bare", 1.2), ("reconciled-once", 1.5), ("filter-p99", 1.5),
        ("start", 4.0), ("operator-memory", 1.5), ("lost-or-doubled", 3.0),
    ],
)  # fmt: skip
def test_figures_of_processes_come_from_the_report(figure: str, value: float) -> None:
    assert of_processes(figure, REPORT) == pytest.approx(value)
    assert measure(Declared(figure, {}, Range(0.0, 1.0)), 5, REPORT).ratio == pytest.approx(value)


def test_bytes_are_the_same_each_time() -> None:
    declared = Declared("pod-memory", {"pods": 50}, Range(0.1, 50.0))
    one, two = (measure(declared, 5, {}).ratio for _ in range(2))
    assert one == pytest.approx(two, rel=0.05)
    assert one > 0.1


def loads(folder: Path, most: float) -> None:
    text = f"turns: 3\nfigures: [{{figure: pod-memory, load: {{pods: 20}}, most: {most}}}]\n"
    (folder / "tiny.yaml").write_text(text, encoding="utf-8")


def run(folder: Path, *more: str) -> int:
    return command.main(["--loads", str(folder), "--records", str(folder / "recorded"), "--date", "2027-01-01", *more])


@pytest.mark.parametrize(("most", "code", "word"), [(1e6, 0, "yes"), (0.001, 1, "NO")])
def test_a_figure_out_of_its_range_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], most: float, code: int, word: str
) -> None:
    loads(tmp_path, most)
    assert run(tmp_path, "--size", "tiny") == code
    assert capsys.readouterr().out.splitlines()[-1].endswith(word)


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--size", "tiny") == 2
    assert "tiny.yaml: there is no such file" in capsys.readouterr().err


def test_a_record_keeps_the_other_sizes(tmp_path: Path) -> None:
    loads(tmp_path, 1e6)
    for size in ("other", "tiny"):
        (tmp_path / f"{size}.yaml").write_text((tmp_path / "tiny.yaml").read_text(), encoding="utf-8")
        assert run(tmp_path, "--size", size, "--record", "0.9.0") == 0
    document = json.loads((tmp_path / "recorded" / "0.9.0.json").read_text(encoding="utf-8"))
    assert (document["release"], document["date"]) == ("0.9.0", "2027-01-01")
    assert sorted(document["sizes"]) == ["other", "tiny"]
    (one,) = document["sizes"]["tiny"]
    assert one["figure"] == "pod-memory"
    assert one["load"] == {"pods": 20}
