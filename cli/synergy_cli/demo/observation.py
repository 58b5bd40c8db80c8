"""What the demo has seen of one TrainingJob, gathered from the versions of its status. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


@dataclass(slots=True)
class Observation:
    """The life of one job so far.

    `speeds` holds the measured steps per second by the CPU (milli-CPU) the job had when it reported them;
    `yields` the step it left at, by run; `starts` the first step reported by a run.
    """

    name: str
    phases: list[str] = field(default_factory=list)
    speeds: dict[int, list[float]] = field(default_factory=dict)
    yields: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    largest_cpu_millis: int = 0
    last: Object = field(default_factory=dict)

    def see(self, job: Object) -> list[str]:
        """Take a new version of the job; what is worth telling, a line each."""
        before, self.last = self.last, job
        old, new = before.get("status") or {}, job.get("status") or {}
        lines = [*self._phase(new), *_points(old, new), *_allocation(old, new)]
        self._progress(new)
        return lines

    def _phase(self, status: Object) -> list[str]:
        phase = status.get("phase")
        if phase is None or (self.phases and self.phases[-1] == phase):
            return []
        self.phases.append(phase)
        return [f"phase {phase}{_because(phase, status)}"]

    def _progress(self, status: Object) -> None:
        progress, allocation = status.get("progress") or {}, status.get("allocation") or {}
        run, steps = progress.get("run", 0), progress.get("steps", 0)
        if run and steps:
            self.starts.setdefault(run, steps)
        cpu = sum(share["cpuMillis"] for share in allocation.get("workers", []))
        training = allocation.get("purpose") == "Train" and allocation.get("state") == "Granted"
        if training and progress.get("stepsPerSecond") and progress.get("run") == allocation.get("run"):
            self.speeds.setdefault(cpu, []).append(progress["stepsPerSecond"])
        if training:
            self.largest_cpu_millis = max(self.largest_cpu_millis, cpu)
        last = (status.get("service") or {}).get("last") or {}
        if last.get("outcome") == "Yielded" and last.get("step") is not None:
            self.yields[last["run"]] = last["step"]


def _because(phase: str, status: Object) -> str:
    service = status.get("service") or {}
    if phase == "Queued" and status.get("queue"):
        return f": {status['queue'].get('message', '')}"
    if phase == "Queued" and (service.get("last") or {}).get("outcome") == "Yielded":
        return f": left at step {service['last'].get('step')}, keeps its progress"
    telling = {"Pending": "Valid", "Failed": "Finished"}.get(phase)
    messages = [item.get("message", "") for item in status.get("conditions", []) if item["type"] == telling]
    return f": {messages[0]}" if messages else ""


def _points(old: Object, new: Object) -> list[str]:
    known = {(point["gpuType"], point["cpuMillis"]) for point in (old.get("profile") or {}).get("points", [])}
    lines = [
        f"measured {point['stepsPerSecond']:.2f} steps/s with {point['cpuMillis']}m CPU"
        for point in (new.get("profile") or {}).get("points", [])
        if (point["gpuType"], point["cpuMillis"]) not in known
    ]
    if (new.get("profile") or {}).get("demand") and not (old.get("profile") or {}).get("demand"):
        demand = new["profile"]["demand"][0]
        lines.append(f"sensitivity matrix done: {demand['cpuMillis']}m CPU saturate it")
    return lines


def _allocation(old: Object, new: Object) -> list[str]:
    before, after = old.get("allocation") or {}, new.get("allocation") or {}
    if not after:
        return []
    place = ", ".join(
        f"{share['gpus']} GPU and {share['cpuMillis']}m CPU on {share['node']}" for share in after.get("workers", [])
    )
    if after["run"] != before.get("run") and after["state"] == "Granted":
        what = "a place to be profiled" if after["purpose"] == "Profile" else f"run {after['run']}"
        return [f"granted {what}: {place}"]
    if after["state"] == "Revoked" and before.get("state") != "Revoked":
        return [f"revoked: {after.get('reason', '')}"]
    if after["state"] == "Granted" and after.get("workers") != before.get("workers"):
        return [f"resized in place: {place}"]
    return []
