"""The long-running programs of one cluster: start, stop, kill, pause, restart each on the same data."""

import signal
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from synergy_devcluster import processes
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.paths import Paths
from synergy_devcluster.processes import MARKER
from synergy_devcluster.state import ComponentRecord, State


@dataclass(frozen=True)
class Component:
    """One program of a running cluster, by name. It works from the state file, so any process may use it."""

    name: str
    paths: Paths
    state: State

    @property
    def record(self) -> ComponentRecord:
        """What the state file says of it."""
        try:
            return self.state.components[self.name]
        except KeyError:
            known = ", ".join(sorted(self.state.components))
            raise BadInputError(f"no component {self.name!r}: use one of {known}") from None

    def alive(self) -> bool:
        """Say whether its process runs (a paused one does)."""
        process = self.record.process
        return process is not None and process.alive()

    def start(self) -> None:
        """Start it with the recorded command line, unless it runs."""
        if self.alive():
            return
        log = Path(self.record.log)
        log.parent.mkdir(parents=True, exist_ok=True)
        self.record.process = processes.spawn(self.record.argv, log, {MARKER: self.state.instance})
        self.state.save(self.paths.state_file)

    def stop(self, grace_s: float = 10) -> None:
        """End it with SIGTERM, and SIGKILL when it has not ended after ``grace_s`` seconds."""
        if self.record.process:
            processes.end([self.record.process], grace_s)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would, and wait until it is gone."""
        if self.record.process:
            processes.end([self.record.process], 0)

    def pause(self) -> None:
        """Freeze it with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused component go on."""
        self._signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop it and start it again on the same data."""
        self.stop()
        self.start()

    def log_tail(self, lines: int = 5) -> list[str]:
        """Return the last lines of its log."""
        try:
            with Path(self.record.log).open(encoding="utf-8", errors="replace") as log:
                return [line.rstrip() for line in deque(log, maxlen=lines)]
        except FileNotFoundError:
            return []

    def _signal(self, number: signal.Signals) -> None:
        process = self.record.process
        if process is None or not process.signal(number):
            raise DevclusterError(f"{self.name} is not running: start it first")


def add(paths: Paths, state: State, name: str, argv: list[str]) -> Component:
    """Record a component of a cluster that is starting, and start it."""
    state.components[name] = ComponentRecord(argv, str(paths.logs / f"{name}.log"))
    component = Component(name, paths, state)
    component.start()
    return component
