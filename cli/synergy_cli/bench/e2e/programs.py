"""Processes that are measured: started, paused, ended, and how much memory they hold."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import psutil

_GRACE_SECONDS = 20.0


class Program:
    """One process with its log. It can be started anew after its end."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = list(command)
        self._log = log
        self._environment = {**os.environ, **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        """Whether its process has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the process."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=self._environment, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL when it has not ended in time."""
        if not self.running or self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _GRACE_SECONDS)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """SIGKILL, as a crash would end it."""
        if self.running and self._process is not None:
            self._process.kill()
            await self._process.wait()

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def memory_bytes(self) -> int:
        """Resident memory of it, and what the processes that it started have beside that: the libraries that they share
        are there once, as in a container. Raises ClickException if it has ended."""
        self.check()
        assert self._process is not None
        top = psutil.Process(self._process.pid)
        beside = sum(int(child.memory_full_info().uss) for child in top.children(recursive=True))
        return int(top.memory_info().rss) + beside

    def cpu_seconds(self) -> float:
        """Processor seconds of it and of the processes that it started and that still run. Raises ClickException if it
        has ended."""
        self.check()
        assert self._process is not None
        top = psutil.Process(self._process.pid)
        spent = [one.cpu_times() for one in (top, *top.children(recursive=True))]
        return float(sum(times.user + times.system for times in spent))

    def check(self) -> None:
        """Raises ClickException, with the end of its log, if it has ended by itself."""
        if not self.running:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
            raise click.ClickException(f"{self.name} has ended: {' | '.join(lines)} (log: {self._log})")

    def _signal(self, number: signal.Signals) -> None:
        self.check()
        assert self._process is not None
        self._process.send_signal(number)


def free_port(host: str = "127.0.0.1") -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
