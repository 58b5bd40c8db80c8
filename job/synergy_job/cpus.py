"""How many CPUs this process may use, which the plan changes while a job runs."""

from __future__ import annotations

import os

from synergy_job.cgroup import Cgroup


def cpus() -> float:
    """CPUs that this process may use now, such as 2.5: the container's CPU limit, at most the machine's CPUs.

    Inside a TrainingJob the limit follows the plan from round to round, without a restart; `os.cpu_count()` does not
    show it. Ask anew where the answer matters, such as at the start of an epoch:

        workers = max(1, round(synergy_job.cpus()))
    """
    available = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    limit = Cgroup.of_this_process().cpu_limit()
    return available if limit is None else min(available, limit)
