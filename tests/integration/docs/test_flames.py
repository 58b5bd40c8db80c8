"""Flame graphs: what is kept of a profile, and that `make plots` draws the same bytes from it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs what `make docs` installs")

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "docs/site/flames.py"
RECORDS = ROOT / "docs/recorded/profiles"
IMAGES = ROOT / "docs/images"
MOST_BYTES = 150_000
CALLER = (
    'process 7:"python -m synergy_extender"',
    "_run (asyncio/runners.py:118)",
    "_pass (/x/site-packages/synergy_extender/planning/loop.py:190)",
)
RAW = (
    ((*CALLER, "decide (/x/synergy_extender/decisions/decide.py:9)"), 600),
    (CALLER, 398),
    ((*CALLER, "rare (/x/json/decoder.py:1)"), 2),
)


def run(*arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The folder with one record."""
    raw, folder = tmp_path / "raw.txt", tmp_path / "profiles"
    raw.write_text("".join(f"{';'.join(stack)} {samples}\n" for stack, samples in RAW))
    folder.mkdir()
    run("--keep", raw, folder / "extender.txt", "The extender")
    return folder


def test_a_record_has_the_functions_without_machinery_and_what_is_too_small_stays_with_its_caller(kept: Path) -> None:
    assert (kept / "extender.txt").read_text().splitlines() == [
        "# The extender",
        "_pass (synergy_extender/planning/loop) 400",
        "_pass (synergy_extender/planning/loop);decide (synergy_extender/decisions/decide) 600",
    ]


def test_a_record_gives_the_same_bytes_twice(kept: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        run(kept, tmp_path / name)
    one, two = ((tmp_path / name / "profile-extender.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"The extender" in one
    assert b"decide (synergy_extender/decisions/decide)" in one


def test_the_committed_graphs_are_those_of_the_committed_records(tmp_path: Path) -> None:
    run(RECORDS, tmp_path)
    fresh = {file.name: file.read_bytes() for file in tmp_path.glob("profile-*.svg")}
    committed = {file.name: file.read_bytes() for file in IMAGES.glob("profile-*.svg")}
    assert fresh
    assert fresh == committed, "run make plots"
    assert max(map(len, committed.values())) < MOST_BYTES
