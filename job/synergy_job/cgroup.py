"""CPU time and memory of the container, from its cgroup (version 1 or 2)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc/self")
_UNLIMITED = 1 << 62
"""Version 1 writes the greatest number of whole pages for no limit."""


@dataclass(frozen=True)
class Cgroup:
    """Where the kernel counts for this container; a part is None where the container has no group of its own."""

    cpu: Path | None
    memory: Path | None
    quota: Path | None = None

    @classmethod
    def of_this_process(cls, proc: Path = _PROC) -> Cgroup:
        """The groups of this process as `/proc/self/cgroup` and `/proc/self/mountinfo` name them."""
        try:
            groups = (proc / "cgroup").read_text()
            mounts = (proc / "mountinfo").read_text()
        except OSError:
            return cls(None, None)
        return cls(
            cpu=_find(groups, mounts, "cpuacct", "cpu.stat"),
            memory=_find(groups, mounts, "memory", "memory.stat"),
            quota=_find(groups, mounts, "cpu", "cpu.stat"),
        )

    def cpu_limit(self) -> float | None:
        """CPUs that the container may use, such as 2.5; None where there is no limit or it is not known."""
        if self.quota is None:
            return None
        text = _read(self.quota / "cpu.max")
        if text is None:  # version 1 has quota and period in files of their own, and a quota of -1 for no limit
            text = f"{_read(self.quota / 'cpu.cfs_quota_us')} {_read(self.quota / 'cpu.cfs_period_us')}"
        amounts = text.split()
        if len(amounts) != 2 or not all(amount.isdecimal() and int(amount) > 0 for amount in amounts):
            return None
        return int(amounts[0]) / int(amounts[1])

    def cpu_seconds(self) -> float | None:
        """CPU time used by all processes of the container so far, None where it is not known."""
        if self.cpu is None:
            return None
        nanoseconds = _read(self.cpu / "cpuacct.usage")
        if nanoseconds is not None:
            return int(nanoseconds) / 1e9
        microseconds = _table(self.cpu / "cpu.stat").get("usage_usec")
        return None if microseconds is None else microseconds / 1e6

    def memory_bytes(self) -> int | None:
        """Memory of the container that the kernel cannot drop (anonymous and shared), None where it is not known."""
        if self.memory is None:
            return None
        table = _table(self.memory / "memory.stat")
        for names in (("total_rss", "total_shmem"), ("anon", "shmem")):
            if all(name in table for name in names):
                return sum(table[name] for name in names)
        return None

    def limit_bytes(self) -> int | None:
        """Memory limit of the container, None where there is none or it is not known."""
        if self.memory is None:
            return None
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = (_read(self.memory / name) or "").strip()
            if text.isdigit() and int(text) < _UNLIMITED:
                return int(text)
        return None


def _find(groups: str, mounts: str, controller: str, statistics: str) -> Path | None:
    """Folder of this process's group for a controller: its own hierarchy (version 1), else the unified one."""
    for wanted in (controller, ""):
        path = _group_path(groups, wanted)
        for root, mount_point in _mounted(mounts, wanted):
            if path is None:
                continue
            inside = os.path.relpath(path, root) if path.startswith(root) else "."
            folder = Path(os.path.normpath(os.path.join(mount_point, inside)))
            if _is_own(folder, statistics):
                return folder
    return None


def _group_path(groups: str, controller: str) -> str | None:
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return None


def _mounted(mounts: str, controller: str) -> list[tuple[str, str]]:
    """Root and mount point of the hierarchies that have the controller; of the unified one for no controller."""
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mount_point = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == ("cgroup" if controller else "cgroup2") and (not controller or controller in options.split(",")):
            found.append((root, mount_point))
    return found


def _is_own(folder: Path, statistics: str) -> bool:
    """Not the machine's root group, which counts everybody: `release_agent` (version 1) is at the root only,
    `cgroup.type` (version 2) everywhere else."""
    if not (folder / statistics).exists() and not (folder / "cpuacct.usage").exists():
        return False
    if (folder / "cgroup.controllers").exists():
        return (folder / "cgroup.type").exists()
    return not (folder / "release_agent").exists()


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _table(path: Path) -> dict[str, int]:
    lines = (line.split() for line in (_read(path) or "").splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
