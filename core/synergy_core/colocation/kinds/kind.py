"""Which jobs are alike in all that decides what they keep beside others."""

from collections.abc import Hashable, Sequence

import numpy as np

from synergy_core.colocation.rules import Rules
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job


def kinds_of(jobs: Sequence[Job], able: Sequence[int], alone: Floats, rules: Rules) -> tuple[dict[Hashable, Job], Ints]:
    """The first job of each kind, and the number of the kind of each job that is `able` to share (indices).

    `alone` are the throughputs of all jobs (J x W).
    """
    kinds: dict[Hashable, Job] = {}
    numbers: dict[Hashable, int] = {}
    of: list[int] = []
    for index in able:
        job = jobs[index]
        kind = (
            id(job.profiles),
            tuple(sorted(job.measured)),
            tuple(sorted(job.usage.items())),
            job.tenant,
            job.sharing_across_tenants,
            job.min_throughput_fraction,
            job.gpu_types,
            rules.shared_types(job),
            rules.corrections(job),
            job.nodes,
            (job.cpu_millis_min, job.cpu_millis_max, job.memory_bytes_min, job.memory_bytes_max),
            alone[index].tobytes(),
        )
        number = numbers.setdefault(kind, len(numbers))
        if number == len(kinds):
            kinds[kind] = job
        of.append(number)
    return kinds, np.array(of, dtype=np.int64)
