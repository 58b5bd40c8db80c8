"""A test that fails is run once more, unless many fail."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.again import MOST

TESTS = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_fails(number):
    tried = Path(__file__).with_name(f"tried-{{number}}")
    before = len(tried.read_text()) if tried.exists() else 0
    tried.write_text("x" * (before + 1))
    assert before >= {failures}

def test_passes():
    tried = Path(__file__).with_name("passed")
    assert not tried.exists()
    tried.touch()
"""
OPTIONS = ["-p", "no:schemathesis", "-q", "--rootdir=."]


def again(file: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "support.again", *OPTIONS, file],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(
    ("count", "failures", "status", "said"),
    [
        (2, 1, 0, "failed once, and passed the second time:\n  test_inner.py::test_fails[0]"),
        (2, 2, 1, "failed twice:\n  test_inner.py::test_fails[0]"),
        (4, 1, 1, "4 failed, 1 passed"),
        (1, 0, 0, "2 passed"),
    ],
)
def test_what_failed_is_run_once_more(tmp_path: Path, count: int, failures: int, status: int, said: str) -> None:
    (tmp_path / "test_inner.py").write_text(TESTS.format(count=count, failures=failures))
    done = again("test_inner.py", tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
    few = failures > 0 and count <= MOST
    assert (tmp_path / "tried-0").read_text() == "x" * (2 if few else 1)


def test_a_wrong_argument_is_not_tried_again(tmp_path: Path) -> None:
    done = again("nothing.py", tmp_path)
    assert done.returncode == 4
    assert "once more" not in done.stdout


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 2), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_run_that_is_ended_is_not_tried_again(tmp_path: Path, number: signal.Signals, status: int) -> None:
    waits = "\ndef test_waits():\n    import os, time\n"
    waits += "    Path(__file__).with_name('waits').write_text(str(os.getpid()))\n    time.sleep(600)\n"
    (tmp_path / "test_inner.py").write_text(TESTS.format(count=1, failures=1) + waits)
    running = subprocess.Popen(
        [sys.executable, "-m", "support.again", *OPTIONS, "test_inner.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 100
        while not (tmp_path / "waits").exists() or not (tmp_path / "waits").read_text():
            assert time.monotonic() < end
            time.sleep(0.05)
        if number == signal.SIGINT:  # from a terminal it comes to the whole group
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        said, _ = running.communicate(timeout=150)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    assert running.returncode == status
    assert "once more" not in said
    if number == signal.SIGINT:
        assert "FAILED test_inner.py::test_fails[0]" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "waits").read_text()), 0)
