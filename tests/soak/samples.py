"""Memory and processor time of each process, again and again."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import click
import psutil

from synergy_cli.bench.e2e.programs import Program
from synergy_devcluster import Cluster

_CONTROL_PLANE = ("kube-apiserver", "etcd", "kwok")


@dataclass(frozen=True)
class Sample:
    """Of one process at a Unix time: resident megabytes (10^6) and the processor seconds since it began."""

    at: float
    megabytes: float
    cpu_s: float


@dataclass
class Samples:
    """By process name. `programs` gives the product's processes; an extender's forecast stands apart."""

    cluster: Cluster
    programs: Callable[[], list[Program]]
    every_s: float
    found: dict[str, list[Sample]] = field(default_factory=dict)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(self.every_s)

    def look(self) -> None:
        """One sample of each process that runs."""
        for program in self.programs():
            try:
                for name, used in program.used().items():
                    self._add(name, used.memory_bytes, used.cpu_s)
            except (click.ClickException, psutil.Error):
                continue  # it is being restarted
        for name in _CONTROL_PLANE:
            if (process := self.cluster.component(name).process) is None:
                continue
            try:
                top = psutil.Process(process.pid)
                times = top.cpu_times()
                self._add(name, int(top.memory_info().rss), times.user + times.system)
            except psutil.Error:
                continue

    def _add(self, name: str, memory_bytes: int, cpu_s: float) -> None:
        self.found.setdefault(name, []).append(Sample(time.time(), memory_bytes / 1e6, cpu_s))
