"""The long-running programs of one cluster: start, stop, kill, pause, restart each on the same data."""

import signal
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import processes
from synergy_devcluster.programs.processes import MARKER, ProcessId
from synergy_devcluster.state import ComponentRecord, State, StateFile


@dataclass(frozen=True)
class Component:
    """One program of a cluster, by name. It works from the state file, so any process may use it."""

    name: str
    file: StateFile

    def record(self) -> ComponentRecord:
        """Return what the state file says of it now.

        Raises:
            BadInputError: the cluster has no such component.
        """
        state = self.file.load()
        return self._record_in(state) if state else ComponentRecord([], "")

    @property
    def process(self) -> ProcessId | None:
        """Its process, running or ended; None when it was never started."""
        return self.record().process

    def alive(self) -> bool:
        """Say whether its process runs (a paused one does)."""
        process = self.process
        return process is not None and process.alive()

    def start(self) -> None:
        """Start it with the recorded command line, unless it runs."""
        with self.file.change() as state:
            record = self._record_in(state)
            if record.process is None or not record.process.alive():
                record.process = processes.spawn(record.argv, Path(record.log), {MARKER: state.instance})

    def stop(self, grace_s: float = 10) -> None:
        """End it with SIGTERM, and SIGKILL when it has not ended after ``grace_s`` seconds."""
        if process := self.process:
            processes.end([process], grace_s)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would, and wait until it is gone."""
        self.stop(grace_s=0)

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

    def set_option(self, name: str, value: str) -> str:
        """Let it have ``--name=value`` from its next start on; return the value that the option had.

        Raises:
            BadInputError: its command line has no such option.
        """
        with self.file.change() as state:
            argv = self._record_in(state).argv
            for index, word in enumerate(argv):
                if word.startswith(f"--{name}="):
                    argv[index] = f"--{name}={value}"
                    return word.removeprefix(f"--{name}=")
        raise BadInputError(f"{self.name} has no option --{name}")

    def log_tail(self, lines: int = 5) -> list[str]:
        """Return the last lines of its log."""
        try:
            with Path(self.record().log).open(encoding="utf-8", errors="replace") as log:
                return [line.rstrip() for line in deque(log, maxlen=lines)]
        except (FileNotFoundError, IsADirectoryError):
            return []

    def _record_in(self, state: State) -> ComponentRecord:
        if self.name not in state.components:
            raise BadInputError(f"no component {self.name!r}: use one of {', '.join(sorted(state.components))}")
        return state.components[self.name]

    def _signal(self, number: signal.Signals) -> None:
        process = self.process
        if process is None or not process.signal(number):
            raise DevclusterError(f"{self.name} is not running: start it first")


def add(file: StateFile, paths: Paths, name: str, argv: list[str]) -> Component:
    """Record a component of a cluster that is starting, and start it."""
    with file.change() as state:
        state.components[name] = ComponentRecord(argv, str(paths.logs / f"{name}.log"))
    component = Component(name, file)
    component.start()
    return component
