"""Start, recognise and end long-running processes, and never touch one that is not ours.

A process is known by its pid and its start time in clock ticks (field 22 of /proc/PID/stat): a pid
alone may have been given to somebody else since.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MARKER = "KUBE_SYNERGY_DEVCLUSTER"
"""Environment variable that every process started for a devcluster carries; its value names the instance."""


@dataclass(frozen=True)
class ProcessId:
    """One process of this boot: its pid and its start time in clock ticks since boot."""

    pid: int
    start_ticks: int

    def alive(self) -> bool:
        """Say whether exactly this process still runs (a zombie none of whose threads runs does not)."""
        return start_ticks(self.pid) == self.start_ticks

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to exactly this process; return False when it is gone."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def start_ticks(pid: int) -> int | None:
    """Return the start time of a running process, or None when there is none or it is a zombie.

    A process whose first thread is a zombie while others still end holds its ports and files: it counts as running.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    threads = int(fields[17])
    return None if fields[0] in "ZX" and threads <= 1 else int(fields[19])


class _Program(subprocess.Popen[bytes]):
    """A program that may outlive its starter: that it still runs when the starter ends is nothing to be warned of."""

    def __del__(self) -> None:
        pass


def spawn(argv: Iterable[str], log: Path, env: Mapping[str, str]) -> ProcessId:
    """Start a program in a session of its own with its output appended to ``log``.

    It survives the caller. ``env`` is added to a minimal environment: proxy and credential variables of the caller's
    shell do not reach the cluster.
    """
    base = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(Path.home()),
        "LANG": "C.UTF-8",
    }
    with log.open("ab") as output:
        process = _Program(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**base, **env},
            cwd="/",
            start_new_session=True,
        )
    _CHILDREN.append(process)
    ticks = start_ticks(process.pid)
    return ProcessId(process.pid, -1 if ticks is None else ticks)


_CHILDREN: list[_Program] = []


def reap() -> None:
    """Collect ended children of this process: none stays a zombie."""
    _CHILDREN[:] = [child for child in _CHILDREN if child.poll() is None]


def marked(instance: str) -> list[ProcessId]:
    """Return every running process that carries ``instance`` as its marker."""
    wanted = f"{MARKER}={instance}".encode()
    return _select(lambda pid: wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))


def in_cgroup(prefix: str) -> list[ProcessId]:
    """Return every running process in the cgroup ``prefix`` (a path such as ``/kubepods``) or below it."""

    def matches(pid: int) -> bool:
        for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
            path = line.split(":", 2)[2]
            if path == prefix or path.startswith(prefix + "/"):
                return True
        return False

    return _select(matches)


def _select(matches: Callable[[int], bool]) -> list[ProcessId]:
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        pid = int(entry)
        ticks = start_ticks(pid)
        try:
            if ticks is not None and matches(pid):
                found.append(ProcessId(pid, ticks))
        except OSError:
            continue
    return found


def end(processes: Iterable[ProcessId], grace_s: float) -> None:
    """End processes: SIGTERM, then SIGKILL to those that still run after ``grace_s`` seconds (0: SIGKILL at once)."""
    targets = list(processes)
    if grace_s > 0:
        for process in targets:
            process.signal(signal.SIGTERM)
            process.signal(signal.SIGCONT)
    if grace_s <= 0 or not wait_gone(targets, grace_s):
        for process in targets:
            process.signal(signal.SIGKILL)
        wait_gone(targets, 10)


def wait_gone(processes: Iterable[ProcessId], timeout_s: float) -> bool:
    """Wait until none of the processes runs; return False when some still do after ``timeout_s`` seconds."""
    targets = list(processes)
    return wait_for(lambda: not any(process.alive() for process in targets), timeout_s)


def wait_for(condition: Callable[[], bool], timeout_s: float, interval_s: float = 0.05) -> bool:
    """Poll ``condition`` until it holds; return False after ``timeout_s`` seconds."""
    deadline = time.monotonic() + timeout_s
    while True:
        reap()
        if condition():
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(interval_s)
