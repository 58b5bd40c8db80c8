"""Jobs that the planner has matrices of for some GPU types only: it estimates the others, and learns while they run.

What a job really does stays as its task says; the types that it is measured on first depend on its model's name.
Different models are thus measured on different types (Gavel, section 3.3: partial profiling).
"""

from collections.abc import Iterable, Mapping
from zlib import crc32

from synergy_core.model.snapshot import Allocation, Node, Profile
from synergy_core.throughput.speed import Speed
from synergy_core.throughput.threads import ceiling, least_percent
from synergy_simulator.engine.run import Run
from synergy_simulator.workloads.workload import Task


class PartialProfiles:
    """What is shown of each task's matrices.

    `most` is on how many types a job is measured, None: all; `nodes` are those that jobs may run on.
    """

    def __init__(self, most: int | None, nodes: Iterable[Node] = ()) -> None:
        self._most = most
        self._nodes = {node.name: node for node in nodes}
        self._shown: dict[int, tuple[Mapping[str, Profile], Mapping[str, Profile]]] = {}
        self._speeds: dict[int, tuple[Profile, Speed]] = {}
        self.errors: list[float] = []
        """How far each estimate was off that a job ran by, relative to its real speed."""

    def of(self, task: Task) -> Mapping[str, Profile]:
        """The matrices that the planner sees: one object for all tasks that have theirs in common."""
        most = self._most
        if most is None or most >= len(task.profiles):
            return task.profiles
        known = self._shown.get(id(task.profiles))
        if known is None:
            types = sorted(task.profiles)
            first = crc32(task.model.encode()) % len(types)
            chosen = {(types * 2)[first + offset] for offset in range(most)}
            shown = {gpu_type: profile for gpu_type, profile in task.profiles.items() if gpu_type in chosen}
            known = self._shown[id(task.profiles)] = (task.profiles, shown)
        return known[1]

    def steps_per_s(self, run: Run, allocation: Allocation) -> float | None:
        """The real speed of a job that runs on a type whose matrix is not shown; None: as the planner says."""
        if run.profiling_s or allocation.gpu_type in run.job.profiles:
            return None
        profile = run.task.profiles.get(allocation.gpu_type)
        if profile is None:
            return None
        known = self._speeds.get(id(profile))
        if known is None:
            known = self._speeds[id(profile)] = (profile, Speed(profile))
        workers = allocation.workers
        amounts = sum(worker.cpu_millis for worker in workers), sum(worker.memory_bytes for worker in workers)
        threads = least_percent(self._nodes[worker.node] for worker in workers)
        most = ceiling(run.task.usage.get(allocation.gpu_type), threads) * known[1].best
        return min(known[1].at(amounts), most)

    def learn(self, running: Iterable[Run]) -> bool:
        """Note what jobs do on types whose matrices are not shown; whether anything is new."""
        if self._most is None:
            return False
        new = False
        for run in running:
            allocation = run.job.running
            if allocation is None or allocation.gpu_type in run.job.measured:
                continue
            speed = self.steps_per_s(run, allocation)
            if speed is not None:
                run.job.measure(allocation.gpu_type, speed)
                new = True
                if allocation.estimated:
                    self.errors.append(abs(allocation.steps_per_s / speed - 1.0))
        return new
