"""Processes of a training job on this machine, as a worker's environment makes them."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PORTS = range(15_000, 30_000)
"""Below those that outgoing connections are given: one of them could take a port that was free a moment ago."""
_given: set[int] = set()


def free_port() -> int:
    """A port that nobody uses, another each time."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            if port not in _given:
                _given.add(port)
                return port


@dataclass
class Job:
    """Runs of one job on this machine: its environment and the files it leaves."""

    script: Path
    folder: Path
    environ: dict[str, str]
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *arguments: str, rank: int = 0, **environ: str) -> subprocess.Popen[str]:
        """One process of a run; its termination message goes to a file of its rank."""
        own = {
            "RANK": str(rank),
            "PYTHONFAULTHANDLER": "1",
            "SYNERGY_TERMINATION_LOG": str(self.folder / f"termination-{rank}"),
        }
        process = subprocess.Popen(
            [sys.executable, str(self.script), "--folder", str(self.folder), *arguments],
            env={**os.environ, **self.environ, **own, **environ},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        self.running.append(process)
        return process

    def run(self, *arguments: str, **environ: str) -> tuple[int, str]:
        """A whole run of one process: exit code and output."""
        return self.end(self.start(*arguments, rank=0, **environ))

    def end(self, process: subprocess.Popen[str], timeout: float = 150) -> tuple[int, str]:
        """Wait for a process: exit code and output."""
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output

    def termination(self, rank: int = 0) -> Any:
        """The termination message, but for the time in it, which no two runs have in common."""
        message = json.loads((self.folder / f"termination-{rank}").read_text())
        message.pop("trained_seconds", None)
        return message

    def trained_seconds(self, rank: int = 0) -> float:
        """The time in the termination message."""
        return float(json.loads((self.folder / f"termination-{rank}").read_text())["trained_seconds"])

    def trained(self, rank: int = 0) -> list[int]:
        """The batches that the state of the newest checkpoint has been trained on, in order."""
        return list(json.loads((self.folder / f"state-{rank}.json").read_text())["batches"])

    def bodies(self, rank: int = 0) -> list[int]:
        """The steps whose loop body ended, over all runs, in order."""
        return [int(line) for line in (self.folder / f"bodies-{rank}").read_text().split()]

    def wait_for_body(self, step: int, rank: int = 0) -> None:
        """Until the loop body of `step` has ended."""
        file = self.folder / f"bodies-{rank}"
        wait_until(lambda: file.exists() and str(step) in file.read_text().split(), f"step {step}")


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = 30) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)


def kill_what_is_left(started: Iterable[subprocess.Popen[str]]) -> None:
    """Kill the processes that no test has waited for, and their children, and print their output. Its end shows where a
    process hangs. Each leads a process group of its own: a child that lives on keeps the output open, and the reader
    would wait for ever."""
    for process in started:
        read = process.stdout is None or process.stdout.closed
        if process.poll() is None or not read:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                process.send_signal(signal.SIGABRT)  # Python prints the stack of each thread
                process.wait(5)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            sys.stdout.write(process.communicate(timeout=30)[0] or "")
