"""The walk along the scheduling queue where only numbers of GPUs matter: `selection.by_share`, in counts.

A running job keeps its GPUs until the walk comes to it. A newcomer takes idle GPUs; if these do not suffice, running
jobs below it are displaced, from the end of the queue up, and no more of them than needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from synergy_core.model.config import Mode
from synergy_core.model.pool import Pool
from synergy_core.policies.queue import Ranking
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.scheduling_queue import JobIndex


@dataclass(slots=True)
class Chosen:
    """The jobs that run."""

    staying: list[JobInfo] = field(default_factory=list)
    newcomers: dict[str, list[JobInfo]] = field(default_factory=dict)
    """By GPU type."""
    losses: dict[str, str] = field(default_factory=dict)
    """Running jobs that lost their places, in that order, and for which job. They may find others."""


def walk(job_index: JobIndex, ranking: Ranking, pools: Sequence[Pool], mode: Mode) -> Chosen | None:
    """The jobs that run; None where the walk meets a job that does not count GPUs only."""
    found = _Walk(job_index, ranking, pools, displaces=mode != "fill")
    return found.chosen if found.goes_through(ranking.names) else None


class _Walk:
    def __init__(self, job_index: JobIndex, ranking: Ranking, pools: Sequence[Pool], *, displaces: bool) -> None:
        self.chosen = Chosen(newcomers={pool.gpu_type: [] for pool in pools})
        self._job_index = job_index
        self._types: Mapping[str, tuple[str, ...]] = ranking.types
        self._pools = pools
        self._displaces = displaces
        self._ranks = {name: rank for rank, name in enumerate(ranking.names)} if displaces else {}
        self._idle = {pool.gpu_type: pool.open_gpus[0] for pool in pools}
        self._displaceable = dict.fromkeys(self._idle, 0)
        """GPUs in places that are still kept."""
        self._kept: dict[str, tuple[JobInfo, str]] = {}
        """Running jobs that the walk has not come to, with their GPU types."""
        self._below: dict[str, list[tuple[int, str]]] = {pool.gpu_type: [] for pool in pools}
        """The same by GPU type, in the order of the queue, the last last; those no longer kept are past."""
        self._may_displace = displaces and ranking.preempts
        self._keep_places()

    def _keep_places(self) -> None:
        for info in self._job_index.running:
            held = info.held
            assert held is not None, "a job that counts GPUs only is on nodes that are there"
            gpu_type = held.pool.gpu_type
            types = self._types.get(info.name) if self._displaces else None
            if types is None or gpu_type in types:
                self._keep(info, gpu_type)
                if self._may_displace:
                    self._below[gpu_type].append((self._ranks[info.name], info.name))
        for below in self._below.values():
            below.sort()

    def _keep(self, info: JobInfo, gpu_type: str) -> None:
        self._kept[info.name] = info, gpu_type
        self._idle[gpu_type] -= info.gpus
        self._displaceable[gpu_type] += info.gpus

    def _release(self, name: str) -> JobInfo:
        info, gpu_type = self._kept.pop(name)
        self._idle[gpu_type] += info.gpus
        self._displaceable[gpu_type] -= info.gpus
        return info

    def goes_through(self, names: Sequence[str]) -> bool:
        """Walk the queue; False where it meets a job that does not count GPUs only."""
        kept, staying, jobs = self._kept, self.chosen.staying, self._job_index.jobs
        for name in names:
            if name in kept:
                info, gpu_type = kept.pop(name)
                self._displaceable[gpu_type] -= info.gpus
                staying.append(info)
            elif self._could_fit(jobs[name].gpus):
                info = self._job_index.info(name)
                if not info.counts_gpus_only(self._pools):
                    return False
                self._admit(info)
        return True

    def _could_fit(self, gpus: int) -> bool:
        """There are enough GPUs on some type, once every job that may be displaced is: a cheap no for most."""
        if not self._may_displace:
            return any(idle >= gpus for idle in self._idle.values())
        return any(idle + self._displaceable[gpu_type] >= gpus for gpu_type, idle in self._idle.items())

    def _admit(self, info: JobInfo) -> None:
        types = info.types_in_order(self._pools, self._types.get(info.name))
        if any(self._enters(info, gpu_type) for gpu_type in types) or not self._may_displace:
            return
        any(self._displaces_for(info, gpu_type) for gpu_type in types)

    def _enters(self, info: JobInfo, gpu_type: str) -> bool:
        """Give a job idle GPUs; a running job that was displaced goes back to its own."""
        if self._idle[gpu_type] < info.gpus:
            return False
        self._idle[gpu_type] -= info.gpus
        returns = info.held is not None and info.held.pool.gpu_type == gpu_type
        (self.chosen.staying if returns else self.chosen.newcomers[gpu_type]).append(info)
        return True

    def _displaces_for(self, info: JobInfo, gpu_type: str) -> bool:
        """Displace running jobs below the job, from the end of the queue up, until it fits."""
        if self._idle[gpu_type] + self._displaceable[gpu_type] < info.gpus:
            return False
        rank, released, entered = self._ranks[info.name], list[JobInfo](), False
        for below, name in reversed(self._below[gpu_type]):
            if below < rank:
                break
            if name in self._kept:
                released.append(self._release(name))
                entered = self._enters(info, gpu_type)
            if entered:
                break
        for victim in reversed(released):
            if not entered or self._idle[gpu_type] >= victim.gpus:
                self._keep(victim, gpu_type)
            else:
                self.chosen.losses[victim.name] = info.name
        below_it = self._below[gpu_type]
        while below_it and below_it[-1][1] not in self._kept:
            below_it.pop()
        return entered
