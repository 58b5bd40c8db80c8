"""Processes that are measured: started, paused, ended, and how much memory they hold."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

_GRACE_SECONDS = 20.0
FORECAST = "synergy_extender.forecasts.process"
"""The module of a process that the extender starts now and then, and which ends with its forecast."""


@dataclass(frozen=True)
class Used:
    """Resident bytes, and processor seconds since a process began."""

    memory_bytes: int
    cpu_s: float


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

    def used(self) -> dict[str, Used]:
        """What it uses, its own processes included, by name; what a forecast uses, if one is being made, stands apart
        as `NAME forecast`. Libraries that processes share are there once, as in a container.

        Raises ClickException if it has ended.
        """
        self.check()
        assert self._process is not None
        top = psutil.Process(self._process.pid)
        found = {self.name: Used(int(top.memory_info().rss), _cpu_seconds(top))}
        for child in top.children(recursive=True):
            try:
                name = f"{self.name} forecast" if FORECAST in child.cmdline() else self.name
                one = Used(int(child.memory_full_info().uss), _cpu_seconds(child))
            except psutil.NoSuchProcess:
                continue  # a forecast that has just ended
            before = found.get(name, Used(0, 0.0))
            found[name] = Used(before.memory_bytes + one.memory_bytes, before.cpu_s + one.cpu_s)
        return found

    def memory_bytes(self) -> int:
        """Resident memory of it and of its own processes, without a forecast. Raises ClickException if it has ended."""
        return self.used()[self.name].memory_bytes

    def cpu_seconds(self) -> float:
        """Processor seconds of the same. Raises ClickException if it has ended."""
        return self.used()[self.name].cpu_s

    def check(self) -> None:
        """Raises ClickException, with the end of its log, if it has ended by itself."""
        if not self.running:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
            raise click.ClickException(f"{self.name} has ended: {' | '.join(lines)} (log: {self._log})")

    def _signal(self, number: signal.Signals) -> None:
        self.check()
        assert self._process is not None
        self._process.send_signal(number)


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def free_port(host: str = "127.0.0.1") -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
