"""Stepping a process's wall clock does not slow it down."""

import os
import subprocess
import sys
from pathlib import Path

from chaos.faults.clock import WallClock

_TWO_BUSY_THREADS = """
import resource, threading
threads = [threading.Thread(target=lambda: sum(x * x for x in range(2_000_000))) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw)
"""
_NOW = "import time; print(time.time())"


def told(program: str, clock: WallClock) -> float:
    """What a Python program prints whose wall clock this is."""
    env = {**os.environ, **clock.environment}
    result = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True, timeout=120
    )
    return float(result.stdout)


def test_a_step_is_seen_and_taken_back(tmp_path: Path) -> None:
    clock = WallClock(tmp_path / "clock")
    before = told(_NOW, clock)
    clock.step(86_400)
    ahead = told(_NOW, clock)
    clock.step(0)
    assert 86_400 <= ahead - before < 86_400 + 100
    assert 0 <= told(_NOW, clock) - before < 100


def test_threads_that_wait_for_the_interpreter_sleep(tmp_path: Path) -> None:
    """A thread asks for the interpreter every 5 ms, or without pause where its deadlines are wrong."""
    assert told(_TWO_BUSY_THREADS, WallClock(tmp_path / "clock")) < 10_000
