"""The size of the machine that the figures were measured on."""

import os
import platform
from typing import Any

import psutil

from synergy_devcluster.programs.versions import pinned


def machine() -> dict[str, Any]:
    """Cores that this process may use, memory, and the versions that matter."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "kubernetes": pinned().kubernetes,
        "load_before": os.getloadavg()[0],
    }


def _cpu_model() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
