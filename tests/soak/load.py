"""Jobs that arrive as others leave, so that unfinished ones always ask for the same number of GPUs."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chaos.faults.api_server import created
from chaos.workload import plain_template
from soak.size import Size, SoakJob, jobs
from support.job.fake_training import FakeTraining, Training
from support.on_cluster.jobs import GIB, matrix
from synergy_cli.bench.e2e.load import GPU_TYPE
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

_LOOK_SECONDS = 0.5
_AT_ONCE = 32
_TTL_SECONDS = 60


@dataclass(frozen=True)
class Arrived:
    """A job that was created at a Unix time."""

    job: SoakJob
    at: float


@dataclass(frozen=True)
class Start:
    """Of a job's first run, Unix times: when the job was created, when it could have trained, when it did."""

    created: float
    due: float
    running: float


@dataclass(frozen=True)
class Busy:
    """GPUs of training jobs and of all unfinished ones at a Unix time."""

    at: float
    training: int
    asked: int


class Load:
    """`unfinished` are the jobs that have not succeeded, by name."""

    def __init__(self, kube: KubeClient, namespace: str, training: FakeTraining, size: Size) -> None:
        self.unfinished: dict[str, Arrived] = {}
        self.arrived: list[Arrived] = []
        self._kube = kube
        self._namespace = namespace
        self._training = training
        self._size = size
        self._jobs: Iterator[SoakJob] = jobs(size)

    async def run(self) -> None:
        """Let jobs arrive until cancelled."""
        while True:
            self.look()
            await self._fill()
            await asyncio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Forget the jobs that have succeeded."""
        for name in [name for name in self.unfinished if self._training.jobs[name].finished is not None]:
            del self.unfinished[name]

    async def _fill(self) -> None:
        while (missing := self._size.asked - self._asked()) > 0:
            group: list[SoakJob] = []
            while len(group) < _AT_ONCE and sum(job.gpus for job in group) < missing:
                group.append(next(self._jobs))
            async with asyncio.TaskGroup() as tasks:
                for job in group:
                    tasks.create_task(self._submit(job))

    async def _submit(self, job: SoakJob) -> None:
        steps = max(1, round(job.seconds))
        self._training.expect(job.name, float(steps))
        arrived = Arrived(job, time.time())
        self.unfinished[job.name] = arrived
        self.arrived.append(arrived)
        manifest = {"metadata": {"name": job.name}, "spec": spec(job, steps)}
        await created(self._kube, TRAINING_JOBS, manifest, self._namespace)

    def _asked(self) -> int:
        return sum(one.job.gpus for one in self.unfinished.values())

    def busy(self) -> Busy:
        """How much trains now."""
        training = sum(one.job.gpus for name, one in self.unfinished.items() if self._of(name).since is not None)
        return Busy(time.time(), training, self._asked())

    @property
    def all_started(self) -> bool:
        """Whether each job that arrived has trained."""
        return all(self._of(name).waits for name in self.unfinished)

    async def drain(self, seconds: float) -> None:
        """Nothing arrives any more, and what is left has no step left to make. Returns once all have succeeded, or
        after so many seconds."""
        deadline = time.monotonic() + seconds
        for name in self.unfinished:
            self._training.hurry(name)
        while self.unfinished and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            self.look()

    def starts(self, since: float) -> list[Start]:
        """Of the jobs that were created from that Unix time on and have trained."""
        found = []
        for one in self.arrived:
            training = self._of(one.job.name)
            if one.at >= since and training.waits:
                due = training.spans[0].due
                found.append(Start(one.at, due, due + training.waits[0]))
        return found

    def runs(self) -> int:
        """Runs of all jobs that trained."""
        return sum(len(one.spans) for one in self._training.jobs.values())

    def _of(self, name: str) -> Training:
        return self._training.jobs[name]


def spec(job: SoakJob, steps: int) -> dict[str, Any]:
    """A TrainingJob that makes one step a second, whatever CPU and memory it has."""
    return {
        "gpus": job.gpus,
        "gpuTypes": [GPU_TYPE],
        "steps": steps,
        "preemption": "Signal",
        "backoffLimit": 1000,
        "ttlSecondsAfterFinished": _TTL_SECONDS,
        "profile": {"mode": "Provided", "matrices": [matrix(GPU_TYPE, {1000 * job.gpus: 1.0}, 8 * job.gpus * GIB)]},
        "template": plain_template(),
    }
