"""TrainingJobs that live: their statuses one after the other, as operator and extender write them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from synergy_api.timestamps import format_time, parse_time

Json = dict[str, Any]
REASONS = ("WaitingForTurn", "NotEnoughGPUs", "Reserved")
GPUS = 2


@dataclass
class Life:
    """One job. Each call of `step` is one write of its status; `now` is the time of that write."""

    name: str
    rng: random.Random
    now: float = 1_000_000.0
    namespace: str = "team"
    status: Json = field(default_factory=dict)
    run: int = 0

    def item(self, version: int) -> Json:
        """The object as the API server has it."""
        return {
            "metadata": {
                "namespace": self.namespace,
                "name": self.name,
                "uid": f"uid-{self.name}",
                "resourceVersion": str(version),
                "creationTimestamp": format_time(1_000_000.0),
            },
            "spec": {"gpus": GPUS, "steps": 100, "gpuTypes": ["V100", "T4"], "template": {"spec": {}}},
            "status": self.status,
        }

    def statuses(self, writes: int) -> Iterator[Json]:
        """So many statuses in a row; every run that begins ends, unless they are over."""
        steps = self._forever()
        for _ in range(writes):
            next(steps)
            self.now += self.rng.choice((0.01, 1.0, 7.0, 45.0))
            yield self.status

    def _write(self, **fields: Any) -> None:
        merged = {**self.status, **fields}
        self.status = {name: value for name, value in merged.items() if value is not None}

    def _forever(self) -> Iterator[None]:
        self._write(phase="Queued")
        yield
        while True:
            yield from self._waits()
            yield from self._runs()

    def _waits(self) -> Iterator[None]:
        for _ in range(self.rng.randint(0, 3)):
            reason = self.rng.choice(REASONS)
            self._write(phase="Queued", queue={"position": self.rng.randint(1, 9), "reason": reason, "message": "wait"})
            yield

    def _runs(self) -> Iterator[None]:
        self.run += 1
        purpose = self.rng.choice(("Train", "Train", "Train", "Profile"))
        gpu_type = self.rng.choice(("V100", "T4"))
        allocation = {
            "run": self.run,
            "purpose": purpose,
            "state": "Granted",
            "gpuType": gpu_type,
            "workers": self._workers(),
            "stepsPerSecond": 3.0,
            "proportionalStepsPerSecond": 2.0,
        }
        self._write(phase="Starting", allocation=allocation, queue=None)
        yield
        service = {"attainedGPUSeconds": 0.0, "endedRun": 0, **self.status.get("service", {})}
        started = self.rng.random() < 0.9
        if started:
            service = {**service, "run": self.run, "runningSince": format_time(self.now), "runningGpuType": gpu_type}
            self._write(phase="Running", service=service)
            yield
            yield from self._goes_on()
        outcome, reason = self._outcome(purpose)
        if outcome == "Yielded":
            self._write(phase="Yielding", allocation={**self.status["allocation"], "state": "Revoked", "reason": "due"})
            yield
        served = max(0.0, self.now - parse_time(service["runningSince"])) if started else 0.0
        attained = service["attainedGPUSeconds"] + served * GPUS
        ended = {**service, "run": self.run, "endedRun": self.run, "attainedGPUSeconds": attained}
        ended["last"] = {"run": self.run, "outcome": outcome, "reason": reason}
        ended.pop("runningSince", None)
        ended.pop("runningGpuType", None)
        self._write(phase="Queued", service=ended)
        yield
        self._write(allocation={**self.status["allocation"], "state": "Released", "workers": []})
        yield

    def _goes_on(self) -> Iterator[None]:
        for _ in range(self.rng.randint(0, 3)):
            if self.rng.random() < 0.3:
                self._write(allocation={**self.status["allocation"], "workers": self._workers()})
            else:
                steps = self.status.get("progress", {}).get("steps", 0) + 1
                report = {"run": self.run, "steps": steps, "stepsPerSecond": 1.5, "updatedAt": format_time(self.now)}
                self._write(progress=report)
            yield

    def _outcome(self, purpose: str) -> tuple[str, str]:
        if purpose == "Profile":
            return "Profiled", ""
        return self.rng.choice((("Yielded", ""), ("Failed", "exit code 1"), ("Evicted", "the node went")))

    def _workers(self) -> list[Json]:
        cpu = self.rng.choice((1000, 2000, 3000))
        return [{"node": "node-1", "gpus": GPUS, "cpuMillis": cpu, "memoryBytes": 1 << 30}]


@dataclass
class Audit:
    """What a history has to say of one job, from all its statuses in order. It shares no code with the recorder."""

    runs: dict[int, Json] = field(default_factory=dict)
    resizes: list[tuple[int, int]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    _cpu: int = 0
    _reason: str = ""

    def see(self, status: Json) -> None:
        """Take the next status."""
        self._see_run(status)
        reason = status.get("queue", {}).get("reason", "")
        if reason and reason != self._reason:
            self.waits.append(reason)
        self._reason = reason

    def gone(self) -> None:
        """The job was deleted: nobody can tell any more how its open run ended."""
        for run in self.runs.values():
            run.setdefault("outcome", "Unknown")

    def _see_run(self, status: Json) -> None:
        allocation = status.get("allocation")
        if allocation is None:
            return
        cpu = sum(worker["cpuMillis"] for worker in allocation.get("workers", []))
        number = allocation["run"]
        if number not in self.runs:
            self.runs[number] = {"gpu_type": allocation["gpuType"], "purpose": allocation["purpose"], "cpu": cpu}
            self._cpu = cpu
        elif cpu and cpu != self._cpu:
            self.resizes.append((number, cpu))
            self._cpu = cpu
        run = self.runs[number]
        if allocation["state"] == "Revoked":
            run["revoked"] = allocation["reason"]
        service = status.get("service", {})
        if service.get("run") == number and service.get("runningSince"):
            run["started"] = True
        if service.get("endedRun", 0) >= number:
            run["outcome"] = service["last"]["outcome"]
