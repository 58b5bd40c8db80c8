"""How many CPUs this process may use, which the plan changes while a job runs."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def cpus(cgroup: Path = CGROUP) -> float:
    """CPUs that this process may use now, such as 2.5: the container's CPU limit, at most the machine's CPUs.

    Inside a TrainingJob the limit follows the plan from round to round, without a restart; `os.cpu_count()` does not
    show it. Ask anew where the answer matters, such as at the start of an epoch:

        workers = max(1, round(synergy_job.cpus()))
    """
    available = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    limit = _version_2(cgroup) or _version_1(cgroup)
    return available if limit is None else min(available, limit)


def _version_2(cgroup: Path) -> float | None:
    """`cpu.max`: quota and period in microseconds, or `max` for no limit."""
    quota, _, period = _read(cgroup / "cpu.max").partition(" ")
    return _cpus(quota, period)


def _version_1(cgroup: Path) -> float | None:
    """Quota and period in files of their own; a quota of -1 is no limit."""
    return _cpus(_read(cgroup / "cpu" / "cpu.cfs_quota_us"), _read(cgroup / "cpu" / "cpu.cfs_period_us"))


def _cpus(quota: str, period: str) -> float | None:
    if not (quota.isdecimal() and period.isdecimal() and int(quota) > 0 and int(period) > 0):
        return None
    return int(quota) / int(period)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, ValueError):
        return ""
