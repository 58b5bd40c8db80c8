"""The user's command as a child process in a session of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from synergy_profiler.printed import PrintedSteps

TAIL_BYTES = 4096
_CHUNK = 65536
_DRAIN_S = 2.0


class Child:
    """A running command. Its output goes on to this process's own; the end of it is kept, and `printed` gets it."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], printed: PrintedSteps | None = None) -> None:
        """Start it. Raises `OSError` when there is no such program or it cannot be run."""
        self._process = subprocess.Popen(
            list(command),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._tail = b""
        self._tail_lock = threading.Lock()
        self._printed = printed
        self._threads = [
            threading.Thread(target=self._pass_on, args=streams, daemon=True)
            for streams in ((self._process.stdout, sys.stdout.buffer), (self._process.stderr, sys.stderr.buffer))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """The command's process."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs; 128 + n when signal n ended it, as a shell says it."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def stop(self, grace_s: float) -> bool:
        """SIGTERM to all its processes, SIGKILL to those that are left after `grace_s` seconds.

        Whether the command itself ended without SIGKILL. Nothing of it runs afterwards, unless it left its session.
        """
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(grace_s)
            willing = True
        except subprocess.TimeoutExpired:
            willing = False
        self.signal(signal.SIGKILL)
        self._process.wait()
        self.drain()
        return willing

    def drain(self) -> None:
        """Wait until all that it wrote before it ended has gone on."""
        for thread in self._threads:
            thread.join(_DRAIN_S)

    def log_tail(self) -> str:
        """The last of what it wrote, at most 4 KiB."""
        with self._tail_lock:
            return self._tail.decode("utf-8", "replace")

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _pass_on(self, source: IO[bytes], target: IO[bytes]) -> None:
        hear = self._printed.stream() if self._printed is not None else None
        with source:
            while True:
                data = os.read(source.fileno(), _CHUNK)
                if not data:
                    return
                if hear is not None:
                    hear(data)
                with self._tail_lock:
                    self._tail = (self._tail + data)[-TAIL_BYTES:]
                with contextlib.suppress(OSError):  # nobody reads this process's output
                    target.write(data)
                    target.flush()


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found: list[int] = []
    new = [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found
