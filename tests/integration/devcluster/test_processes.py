"""Processes: started apart from their starter, known by pid and start time, ended without harming others."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from synergy_devcluster.programs import processes
from synergy_devcluster.programs.processes import MARKER, ProcessId

SLEEP = ["sleep", "60"]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[ProcessId]:
    """A process of ours that sleeps."""
    process = processes.spawn(SLEEP, tmp_path / "log", {MARKER: "of-this-test"})
    yield process
    processes.end([process], 0)


def test_a_process_has_a_session_of_its_own_and_writes_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = processes.spawn(["sh", "-c", "echo to the log; exec sleep 60"], log, {})
    assert processes.wait_for(lambda: log.read_text() == "to the log\n", 5)
    assert os.getsid(process.pid) == process.pid
    processes.end([process], 5)
    assert not process.alive()


def test_the_callers_environment_does_not_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    log = tmp_path / "log"
    process = processes.spawn(["env"], log, {MARKER: "x"})
    assert processes.wait_gone([process], 5)
    assert "HTTPS_PROXY" not in log.read_text()
    assert f"{MARKER}=x" in log.read_text()


def test_it_outlives_its_starter_which_says_nothing_of_it(tmp_path: Path) -> None:
    imports = "from pathlib import Path; from synergy_devcluster.programs.processes import spawn"
    start = f"print(spawn({SLEEP}, Path({str(tmp_path / 'log')!r}), {{}}).pid)"
    starter = [sys.executable, "-W", "error", "-c", f"{imports}; {start}"]
    ended = subprocess.run(starter, capture_output=True, text=True, timeout=30, check=True)
    process = ProcessId(int(ended.stdout), processes.start_ticks(int(ended.stdout)) or -1)
    try:
        assert process.alive()
        assert ended.stderr == ""
    finally:
        processes.end([process], 0)


def test_somebody_elses_process_with_the_same_pid_is_never_signalled() -> None:
    with subprocess.Popen(SLEEP) as foreign:
        ticks = processes.start_ticks(foreign.pid)
        assert ticks is not None
        recorded = ProcessId(foreign.pid, ticks - 1)
        assert not recorded.alive()
        assert recorded.signal(signal.SIGKILL) is False
        processes.end([recorded], 0)
        assert foreign.poll() is None, "the process that has our old pid still runs"
        foreign.kill()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    stubborn = processes.spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"], log, {})
    assert processes.wait_for(lambda: log.read_text() == "ready\n", 5)
    processes.end([stubborn], 0.3)
    assert not stubborn.alive()


def test_a_stopped_process_ends_on_sigterm(started: ProcessId) -> None:
    started.signal(signal.SIGSTOP)
    processes.end([started], 5)
    assert not started.alive()


def test_processes_are_found_by_their_mark(started: ProcessId) -> None:
    # a process that has only just been started has its environment a moment later
    assert processes.wait_for(lambda: processes.marked("of-this-test") == [started], 5)
    assert processes.marked("of-this") == []


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = ProcessId(child.pid, processes.start_ticks(child.pid) or -1)
    assert processes.wait_for(lambda: not process.alive(), 10)
    child.wait()


def test_a_process_lives_as_long_as_one_of_its_threads() -> None:
    end_first_thread = (
        "import ctypes, platform, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); "
        "ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)"
    )
    with subprocess.Popen([sys.executable, "-c", end_first_thread]) as child:
        process = ProcessId(child.pid, processes.start_ticks(child.pid) or -1)
        stat = Path(f"/proc/{child.pid}/stat")
        assert processes.wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", 20)
        assert process.alive()
        child.kill()
        assert processes.wait_for(lambda: not process.alive(), 10)


def test_waiting_gives_up(started: ProcessId) -> None:
    assert processes.wait_gone([started], 0.1) is False
