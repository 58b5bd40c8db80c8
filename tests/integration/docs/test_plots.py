"""`make plots` draws the same bytes from the same results; the committed plots are drawn from the committed results."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs what `make docs` installs")

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "reproductions"
TINY = {
    "name": "synergy-fig9",
    "quick": True,
    "seed": 0,
    "data": False,
    "header": ["jobs/h", "GPUs wanted", "proportional, h", "tune, h"],
    "rows": [["6", "80%", "10.0", "9.0"], ["9", "116%", "80.4", "24.3"]],
}
MOST_BYTES = 60_000


def _draw(results: Path, out: Path) -> subprocess.CompletedProcess[str]:
    out.mkdir()
    command = [sys.executable, str(ROOT / "docs/site/plots.py"), str(results), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_result_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "synergy-fig9.json").write_text(json.dumps(TINY))
    for name in ("one", "two"):
        drawn = _draw(results, tmp_path / name)
        assert drawn.returncode == 0, drawn.stderr
    one, two = (tmp_path / name / "synergy-fig9.svg" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    text = one.read_text()
    assert "quick run, our own models and traces, seed 0" in text
    assert "the paper" in text
    assert "<dc:date>" not in text


def test_a_folder_without_results_is_one_line(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    drawn = _draw(results, tmp_path / "out")
    assert drawn.returncode == 1
    assert drawn.stderr == f"{results}: there are no results\n"


def test_the_committed_plots_are_those_of_the_committed_results(tmp_path: Path) -> None:
    drawn = _draw(PAGES / "results", tmp_path / "out")
    assert drawn.returncode == 0, drawn.stderr
    fresh = {file.name: file.read_bytes() for file in (tmp_path / "out").glob("*.svg")}
    committed = {file.name: file.read_bytes() for file in PAGES.glob("*.svg")}
    assert sorted(fresh) == sorted(committed)
    stale = [name for name in fresh if fresh[name] != committed[name]]
    assert not stale, f"{', '.join(stale)}: run make plots"
    assert max(len(drawn) for drawn in committed.values()) < MOST_BYTES
