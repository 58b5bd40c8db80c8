"""Gives each job that may run on several GPU types one of them, its home, by a walk along the queue that counts GPUs.

The walk is that of the planner (`selection.admission`) without nodes, CPU and memory: a running job stays, a newcomer
takes GPUs that nobody holds on the first type that has them, else those of running jobs below it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from synergy_core.model.config import Mode
from synergy_core.model.snapshot import Job, Snapshot


def homes(
    snapshot: Snapshot,
    queue: Iterable[Job],
    choices: Mapping[str, Sequence[str]],
    *,
    mode: Mode,
    gives_way: Callable[[Job], bool],
) -> dict[str, str]:
    """The home of each job in `choices`, which has its GPU types in the order in which it would take them.

    `queue` has all jobs in order. `gives_way`: the job may be displaced if it runs.
    """
    walk = _Counts(snapshot, list(queue), gives_way if mode == "round" else lambda _: False)
    return {job.name: home for job in walk.queue if (home := walk.home(job, choices.get(job.name)))}


class _Counts:
    """GPUs by type while the queue is walked."""

    def __init__(self, snapshot: Snapshot, queue: list[Job], gives_way: Callable[[Job], bool]) -> None:
        self.queue = queue
        self._all: dict[str, int] = {}
        for node in snapshot.nodes:
            gpus = max(0, node.gpus - node.gpus_used) if node.schedulable else 0
            self._all[node.gpu_type] = self._all.get(node.gpu_type, 0) + gpus
        self._idle = dict(self._all)
        self._victims: dict[str, list[Job]] = {one: [] for one in self._all}
        """Running jobs that the walk has not come to and that may be displaced, the lowest in the queue last."""
        self._below = dict.fromkeys(self._all, 0)
        self._lost: set[str] = set()
        for job in queue:
            if job.running is not None and job.running.gpu_type in self._all:
                self._idle[job.running.gpu_type] -= job.gpus
                if gives_way(job):
                    self._victims[job.running.gpu_type].append(job)
                    self._below[job.running.gpu_type] += job.gpus
        self._open = {job.name for victims in self._victims.values() for job in victims}

    def home(self, job: Job, choices: Sequence[str] | None) -> str | None:
        """Counts the job; its home if it has a choice."""
        types = choices or [one for one in self._all if not job.gpu_types or one in job.gpu_types]
        running = job.running
        if running is not None and running.gpu_type in self._all and job.name not in self._lost:
            if job.name in self._open:
                self._open.remove(job.name)
                self._below[running.gpu_type] -= job.gpus
            return None if choices is None else running.gpu_type
        found = next((one for one in types if self._idle[one] >= job.gpus), None)
        if found is None:
            found = next((one for one in types if self._idle[one] + self._below[one] >= job.gpus), None)
            if found is not None:
                self._displace(found, job.gpus)
        if found is not None:
            self._idle[found] -= job.gpus
        if choices is None:
            return None
        if found is None and running is not None:
            return running.gpu_type
        return found or next((one for one in choices if self._all[one] >= job.gpus), choices[0])

    def _displace(self, gpu_type: str, gpus: int) -> None:
        while self._idle[gpu_type] < gpus:
            victim = self._victims[gpu_type].pop()
            if victim.name in self._open:
                self._open.remove(victim.name)
                self._lost.add(victim.name)
                self._below[gpu_type] -= victim.gpus
                self._idle[gpu_type] += victim.gpus
