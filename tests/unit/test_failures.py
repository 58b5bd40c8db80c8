"""What failed is noted for the end of a long run: each test once, also with worker processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.fixture
def broken():
    yield
    raise OSError("no space left")

def test_fails():
    assert 1 + 1 == 3, "sums are wrong"

def test_with_a_fixture(broken):
    pass

def test_passes():
    pass
"""


def noted(folder: Path, *arguments: str) -> list[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "support.failures", "-q", "--rootdir=.", *arguments],
        cwd=folder,
        env=own | {"PYTHONPATH": str(Path(__file__).parents[1]), "FAILURES": str(folder / "failures")},
        capture_output=True,
        timeout=240,
        check=False,
    )
    file = folder / "failures"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_each_failure_is_noted_once(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "test_inner.py").write_text(TESTS)
    failed, fixture = sorted(noted(tmp_path, *workers))
    assert failed.startswith("test_inner.py::test_fails (call): AssertionError: sums are wrong")
    assert fixture == "test_inner.py::test_with_a_fixture (teardown): OSError: no space left"


def test_a_file_that_cannot_be_read_is_noted(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text("import missing_module\n")
    unread, ended = noted(tmp_path)
    assert unread.startswith("test_inner.py (collection): ")
    assert "missing_module" in unread
    assert ended.endswith(": ended with 2")


def test_a_run_without_failures_notes_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text("def test_passes(): pass\n")
    assert noted(tmp_path) == []
