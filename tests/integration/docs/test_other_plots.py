"""The plots of a soak and of the history by release are drawn from their data, twice the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="needs what `make docs` installs")

DOCS = Path(__file__).parents[3] / "docs"
SOAK: dict[str, Any] = {
    "soak": {"gpus": 100, "load": 0.9},
    "disturbances": [{"kind": "operator-killed", "at": 30.0, "until": 33.0, "nodes": 0}],
    "series": {
        "starts": [[10.0, 1.0], [20.0, 2.0]],
        "bare_pods": [[15.0, 0.5]],
        "busy": [[0.0, 0, 90], [60.0, 85, 90]],
        "memory_mb": {f"process-{index}": [[0.0, 100.0], [60.0, 110.0 + index]] for index in range(7)},
    },
}


def drawn(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DOCS / "site" / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("starts", [SOAK["series"]["starts"], []], ids=["some", "none"])
def test_a_soak_is_drawn(tmp_path: Path, starts: list[list[float]]) -> None:
    report = tmp_path / "soak.json"
    report.write_text(json.dumps({**SOAK, "series": {**SOAK["series"], "starts": starts}}))
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        done = drawn("soak.py", report, tmp_path / name)
        assert done.returncode == 0, done.stderr
        found.append((tmp_path / name / "soak.svg").read_bytes())
    assert found[0] == found[1]
    assert b"100 GPUs, load 90%" in found[0]
    assert b"process-6" in found[0]


def record(release: str, day: int, **ratios: float) -> dict[str, Any]:
    figures = [{"figure": name, "load": {"jobs": 2}, "ratio": ratio} for name, ratio in ratios.items()]
    return {"release": release, "date": f"2027-01-{day:02}", "sizes": {"small": figures}}


def test_a_history_has_what_two_releases_have(tmp_path: Path) -> None:
    for one in (record("0.1.0", 1, plan=4.0), record("0.2.0", 2, plan=2.0, view=3.0)):
        (tmp_path / f"{one['release']}.json").write_text(json.dumps(one))
    done = drawn("history.py", tmp_path, tmp_path / "history.svg")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "history.svg").read_text()
    assert "relative to 0.2.0" in text
    assert ">plan<" in text
    assert ">view<" not in text


def test_a_folder_without_records_is_one_line(tmp_path: Path) -> None:
    done = drawn("history.py", tmp_path, tmp_path / "history.svg")
    assert (done.returncode, done.stderr) == (1, f"{tmp_path}: there are no records\n")


def test_the_committed_history_is_drawn_from_the_committed_records(tmp_path: Path) -> None:
    done = drawn("history.py", DOCS / "recorded" / "performance", tmp_path / "performance.svg")
    assert done.returncode == 0, done.stderr
    fresh, committed = (tmp_path / "performance.svg").read_bytes(), (DOCS / "images" / "performance.svg").read_bytes()
    assert fresh == committed, "run make plots"
