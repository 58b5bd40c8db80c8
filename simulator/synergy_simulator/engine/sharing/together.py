"""Speeds of jobs that share a GPU in the simulation, and what is measured of them."""

from collections.abc import Iterable, Mapping

from synergy_core.model.snapshot import Allocation, Job, Node, Profile, Shared
from synergy_core.throughput.speed import Speed
from synergy_simulator.engine.run import Run
from synergy_simulator.engine.sharing.truth import Truth

_PLENTY = (1 << 50, 1 << 50)


class Together:
    """What the truth says of the jobs of one simulation."""

    def __init__(self, truth: Truth, nodes: Iterable[Node]) -> None:
        self._truth = truth
        self._thread_percent = {node.name: node.client_thread_percent for node in nodes}
        self._speeds: dict[int, tuple[Profile, Speed]] = {}
        self._fractions: dict[str, float] = {}
        """Of each job that shares, the part of the GPU's speed that it really has."""

    def steps_per_s(self, allocation: Allocation, members: Mapping[str, Job]) -> float:
        """The real speed of a job in its place; `members` are the jobs that share GPUs, by name."""
        self._fractions.pop(allocation.job, None)
        if not allocation.partners:
            return allocation.steps_per_s
        job = members[allocation.job]
        together = [job, *(members[name] for name in allocation.partners)]
        (worker,) = allocation.workers
        fraction = self._truth.fractions(together, allocation.gpu_type, self._thread_percent[worker.node])[0]
        self._fractions[allocation.job] = fraction
        speed = self._speed(job.profiles[allocation.gpu_type])
        return min(speed.at((worker.cpu_millis, worker.memory_bytes)), fraction * speed.at(_PLENTY))

    def measured(self, running: Iterable[Run], now: float) -> bool:
        """Note what each job that shares turned out to keep; whether anything was learnt that was not known."""
        by_name = {run.task.name: run for run in running}
        learnt = False
        for name, run in by_name.items():
            allocation = run.job.running
            if allocation is None or name not in self._fractions or not all(p in by_name for p in allocation.partners):
                continue
            usages = tuple(by_name[partner].job.usage[allocation.gpu_type] for partner in allocation.partners)
            known = {(one.gpu_type, one.partners) for one in run.job.shared}
            learnt |= (allocation.gpu_type, allocation.partners) not in known
            run.job.note(
                Shared(
                    gpu_type=allocation.gpu_type,
                    partners=allocation.partners,
                    usages=usages,
                    fraction=self._fractions[name],
                    at_s=now,
                )
            )
        return learnt

    def _speed(self, profile: Profile) -> Speed:
        """The matrix is kept: no other can get its id."""
        known = self._speeds.get(id(profile))
        if known is None:
            known = self._speeds[id(profile)] = (profile, Speed(profile))
        return known[1]
