"""`kube-synergy reproduce` and `bench simulator`: ours beside theirs, one report, one line for bad input."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from synergy_cli.bench import simulator as bench_simulator
from synergy_cli.main import main
from synergy_simulator.reproductions import sweeps
from synergy_simulator.reproductions.registry import REPRODUCTIONS


def _reproduce(folder: Path, *arguments: str) -> Result:
    plot = folder / "report.html"
    return CliRunner().invoke(main, ["reproduce", *arguments, "--processes", "1", "--report", str(plot)])


def test_the_motivation_is_a_gain_for_the_sensitive_at_nobodys_cost(tmp_path: Path) -> None:
    result = _reproduce(tmp_path, "synergy-motivation", "--quick", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["figures"]["gain"] > 1.15
    epochs = [float(row[3]) for row in report["rows"] if row[0].startswith("table")]
    assert epochs[:4] == [1, 1, 1, 1]
    assert max(epochs[4:]) <= 1
    assert "What differs from the paper" in (tmp_path / "report.html").read_text()


def test_optimistic_profiling_is_near_what_runs_say(tmp_path: Path) -> None:
    figures = json.loads(_reproduce(tmp_path, "synergy-fig5", "--quick", "--json").stdout)["figures"]
    assert figures["memory_error"] < 0.03
    assert figures["cpu_error"] < 0.03
    assert figures["points"] <= 8
    assert (tmp_path / "report.html").read_text().count('class="plot"') == 2


def test_a_figure_over_load_for_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "QUICK", sweeps.Scale(1, 60, (20, 40)))
    result = _reproduce(tmp_path, "synergy-fig9", "--quick")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Figure 9: FIFO, single-GPU"
    assert "81 h proportional, 22 h tune" in result.stdout
    assert any(line.startswith("* Matrices: the built-in models") for line in lines)


def test_several_seeds_give_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "QUICK", sweeps.Scale(1, 60, (20, 40)))
    gains = [
        json.loads(_reproduce(tmp_path, "synergy-fig9", "--quick", "--seed", seed, "--json").stdout)["figures"]
        for seed in "01"
    ]
    result = _reproduce(tmp_path, "synergy-fig9", "--quick", "--seeds", "0:2", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["seeds"] == [0, 1]
    assert report["figures"]["gain_at_9"] == pytest.approx((gains[0]["gain_at_9"] + gains[1]["gain_at_9"]) / 2)
    assert report["ci95"]["gain_at_9"] > 0
    page = (tmp_path / "report.html").read_text()
    assert "Figures over seeds" in page
    assert '"band":[[' in page
    lines = _reproduce(tmp_path, "synergy-fig9", "--quick", "--seeds", "0:2").stdout
    assert "The table is of seed 0. Charts and the figures over seeds are means of 2 seeds (0 to 1)" in lines


def test_every_reproduction_of_the_paper_is_there() -> None:
    figures = [f"synergy-fig{number}" for number in (5, 6, 7, 8, 9, 11, 12, 13)]
    others = ("synergy-ftf", "synergy-motivation", "synergy-opt-gap", "synergy-table5")
    tiresias = [
        f"tiresias-{name}"
        for name in ("table1", "table5", "composition", "fig7", "fig10", "fig12", "fig14", "fig15", "ilp")
    ]
    gavel = [
        *(f"gavel-fig{number}" for number in (9, 10, 11, 12, 13, 14, 15, 16)),
        *(
            f"gavel-{name}"
            for name in (
                "authors",
                "cost",
                "estimator",
                "fifo",
                "makespan",
                "packing",
                "placements",
                "priorities",
                "table3",
            )
        ),
    ]
    colocation = [f"colocation-{name}" for name in ("best", "worst", "modes")]
    assert set(REPRODUCTIONS) == {*figures, *others, *tiresias, *gavel, *colocation}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nothing",), "NAME: 'nothing' is not there; choose one of colocation-best, "),
        (("synergy-fig5", "--data", "/no/folder"), "--data: there is no folder /no/folder"),
        (("gavel-authors",), "--data, gavel/results.json: is not there; "),
        (("gavel-placements",), "--data, gavel/simulation_throughputs.json: is not there; "),
    ],
)
def test_bad_arguments_are_one_line(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    result = _reproduce(tmp_path, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {line}")
    assert not (tmp_path / "report.html").exists()


def test_bench_has_each_run_beside_the_authors(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = bench_simulator.BenchTrace(
        "tiny",
        lambda source: source.on_nodes(1, source.drawn(20, 4.0)),
        None,
        (
            bench_simulator.Case("fifo", "proportional", 60.0, 1000.0),
            bench_simulator.Case("fifo", "tune", 60.0, aware=False),
        ),
    )
    monkeypatch.setattr(bench_simulator, "KINDS", (kind,))
    result = CliRunner().invoke(main, ["bench", "simulator", "--json"])
    assert result.exit_code == 0, result.output
    usual, tuned = json.loads(result.stdout)["cases"]
    assert (usual["gpus"], usual["jobs"], usual["within_aim"]) == (8, 20, True)
    assert usual["ratio"] == pytest.approx(1000.0 / usual["cpu_s"])
    assert tuned["ratio"] is None
    assert tuned["avg_jct_h"] <= usual["avg_jct_h"]
    table = CliRunner().invoke(main, ["bench", "simulator"]).stdout
    assert table.splitlines()[2].split()[:3] == ["tiny", "fifo", "proportional"]
    assert table.splitlines()[3].split()[:4] == ["tiny", "fifo,", "agnostic", "tune"]


def test_bench_without_its_data_is_one_line() -> None:
    result = CliRunner().invoke(main, ["bench", "simulator", "--data", "/no/folder"])
    assert (result.exit_code, result.stderr) == (2, "error: --data: there is no folder /no/folder\n")
