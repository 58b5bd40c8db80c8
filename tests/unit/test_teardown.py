"""A failed test whose fixture waits for ever ends all the same."""

import subprocess
import sys
from pathlib import Path

CONFTEST = """
from support import teardown
from support.teardown import pytest_runtest_teardown
teardown.TEARDOWN_S = 0.5
"""
TESTS = """
import time
import pytest

@pytest.fixture
def waits():
    yield
    time.sleep(600)

@pytest.fixture
def quick():
    yield

@pytest.mark.timeout(0.5)
def test_cut_off(waits):
    time.sleep(600)

@pytest.mark.timeout(10)
def test_failed(waits):
    assert False

@pytest.mark.timeout(0.5)
def test_cut_off_in_time(quick):
    time.sleep(600)

@pytest.mark.timeout(10)
def test_next(quick):
    pass
"""


def test_a_fixture_that_waits_for_ever_is_cut_off_too(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_inner.py").write_text(TESTS)
    options = (
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
        "-q",
        f"--override-ini=pythonpath={Path(__file__).parents[1]}",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "3 failed, 1 passed, 2 errors" in done.stdout
    assert done.stdout.count("Failed: the fixtures of a failed test did not end in 0.5 s") >= 2
