"""Several simulations at once end when the first process does, whatever ends it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from dataclasses import dataclass
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import nothing

@dataclass(frozen=True)
class Numbered:
    number: int
    label: str = "numbered"

def begin(case):
    (Path(sys.argv[1]) / str(os.getpid())).touch()
    if sys.argv[2] == "fails":
        while len(list(Path(sys.argv[1]).iterdir())) < 2:
            time.sleep(0.01)
        if case.number == 1:
            raise ValueError("odd")
    time.sleep(600)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests behind it ignores it
    Processes(2).run(begin, [Numbered(number) for number in range(8)], nothing)
"""
SOON_S = 60.0


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen[str], list[int]]]]:
    """A first process and its two others, in the middle of their first case."""
    (tmp_path / "script.py").write_text(SCRIPT)
    workers = tmp_path / "workers"
    workers.mkdir()
    process: subprocess.Popen[str] | None = None

    def start(how: str) -> tuple[subprocess.Popen[str], list[int]]:
        nonlocal process
        command = [sys.executable, str(tmp_path / "script.py"), str(workers), how]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        _until(lambda: len(list(workers.iterdir())) == 2)
        return process, [int(file.name) for file in workers.iterdir()]

    yield start
    for pid in [int(file.name) for file in workers.iterdir()]:
        if _lives(pid):
            os.kill(pid, signal.SIGKILL)
    if process is not None:
        process.kill()
        process.communicate()


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


Begun = Callable[[str], tuple[subprocess.Popen[str], list[int]]]


def test_an_interruption_from_the_keyboard_waits_for_nothing(begun: Begun) -> None:
    process, workers = begun("sleeps")
    os.killpg(process.pid, signal.SIGINT)  # a terminal's goes to all of them
    _, errors = process.communicate(timeout=SOON_S)
    assert process.returncode == -signal.SIGINT
    assert errors.count("KeyboardInterrupt") == 1
    _until(lambda: not any(map(_lives, workers)))


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_first(begun: Begun, sign: signal.Signals) -> None:
    process, workers = begun("sleeps")
    process.send_signal(sign)
    process.wait(timeout=SOON_S)
    _until(lambda: not any(map(_lives, workers)))


def test_what_one_raises_ends_the_others(begun: Begun) -> None:
    process, workers = begun("fails")
    _, errors = process.communicate(timeout=SOON_S)
    assert "ValueError: odd" in errors
    _until(lambda: not any(map(_lives, workers)))
