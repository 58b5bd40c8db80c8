"""What the status of a TrainingJob must keep from one version to the next. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from synergy_api.timestamps import parse_time

Object = Mapping[str, Any]
_FINAL = ("Succeeded", "Failed")


def check_job(old: Object | None, new: Object, *, true_times: bool = True) -> Iterator[str]:
    """Broken promises, in words. Without `true_times` somebody who wrote of times had a clock that was off: when leases
    end is not looked at."""
    name, status = new["metadata"]["name"], new.get("status") or {}
    before = (old or {}).get("status") or {}
    yield from (f"{name}: {text}" for text in _finished(before, status, new["spec"]["steps"]))
    yield from (f"{name}: {text}" for text in _books(before, status, new["spec"]["gpus"]))
    yield from (f"{name}: {text}" for text in _allocation(before, status, new["spec"]["gpus"], true_times=true_times))
    yield from (f"{name}: {text}" for text in _never(before, status, new["spec"]))


def _finished(before: Object, status: Object, steps: int) -> Iterator[str]:
    """What is finished stays so; progress is never beyond the end."""
    if before.get("phase") in _FINAL and status.get("phase") != before["phase"]:
        yield f"was {before['phase']} and is {status.get('phase')}"
    if ((status.get("progress") or {}).get("steps") or 0) > steps:
        yield f"has {status['progress']['steps']} of {steps} steps"


def _books(before: Object, status: Object, gpus: int) -> Iterator[str]:
    """Runs are counted upwards, one after another; attained service never falls and never outgrows the clock."""
    was, now = before.get("service") or {}, status.get("service") or {}
    for field in ("run", "endedRun", "failures", "preemptions"):
        if now.get(field, 0) < was.get(field, 0):
            yield f"service.{field} fell from {was.get(field)} to {now.get(field, 0)}"
    if now.get("attainedGPUSeconds", 0.0) < was.get("attainedGPUSeconds", 0.0) - 1e-6:
        yield f"attained service fell from {was['attainedGPUSeconds']} to {now.get('attainedGPUSeconds', 0.0)}"
    if now.get("endedRun", 0) > now.get("run", 0):
        yield f"run {now.get('endedRun')} ended, but the newest is {now.get('run', 0)}"
    if was.get("runningSince") and now.get("runningSince") and now.get("run", 0) != was.get("run", 0):
        yield f"run {now.get('run')} took over the start of run {was.get('run')}, which was never closed"
    if was.get("runningSince") and not now.get("runningSince"):
        yield from _closed(was, now, gpus)


def _closed(was: Object, now: Object, gpus: int) -> Iterator[str]:
    if now.get("endedRun", 0) < was.get("run", 0):
        yield f"run {was.get('run')} lost its start without having ended"
    if now.get("attainedGPUSeconds", 0.0) < was.get("attainedGPUSeconds", 0.0):
        yield f"the service of run {was.get('run')} is lost"


def _allocation(before: Object, status: Object, gpus: int, *, true_times: bool) -> Iterator[str]:
    """A place is whole and even, no slower than the proportional share, and a lease is never taken back."""
    allocation, was = status.get("allocation") or {}, before.get("allocation") or {}
    if allocation.get("state") == "Granted":
        workers = allocation.get("workers") or []
        if allocation.get("purpose", "Train") == "Train" and sum(w["gpus"] for w in workers) != gpus:
            yield f"was given {sum(w['gpus'] for w in workers)} GPUs for {gpus}"
        rates = [w["memoryBytes"] / w["gpus"] for w in workers]
        if rates and max(rates) > min(rates) * 1.01 + 1:
            yield f"memory is not in proportion to GPUs: {workers}"
        rates = [w["cpuMillis"] / w["gpus"] for w in workers]
        if rates and max(rates) > min(rates) * 1.01 + 1:
            yield f"CPU is not in proportion to GPUs: {workers}"
        usual, given = allocation.get("proportionalStepsPerSecond") or 0.0, allocation.get("stepsPerSecond") or 0.0
        if given < usual * (1 - 1e-6):
            yield f"is planned at {given} steps/s, its share gives {usual}"
    same_run = was.get("run") == allocation.get("run")
    if same_run and was.get("state") in ("Revoked", "Released") and allocation.get("state") == "Granted":
        yield f"run {was['run']} was {was['state']} and is granted again"
    if same_run and was.get("admitted") and was.get("state") == allocation.get("state") == "Granted":
        if not allocation.get("admitted"):
            yield f"run {was['run']} was admitted and is not any more"
        if true_times and parse_time(allocation["leaseUntil"]) < parse_time(was["leaseUntil"]):
            yield f"the lease of run {was['run']} was cut short"
        places = [{w["node"]: w["gpus"] for w in one.get("workers", [])} for one in (was, allocation)]
        if places[0] != places[1]:
            yield f"run {was['run']} was moved while it ran"
    if allocation.get("run", 0) < was.get("run", 0) and allocation:
        yield f"run {allocation['run']} was granted after run {was['run']}"


def _never(before: Object, status: Object, spec: Object) -> Iterator[str]:
    """Who may not be preempted keeps its place."""
    allocation, was = status.get("allocation") or {}, before.get("allocation") or {}
    told = was.get("state") == "Granted" and was.get("admitted") and allocation.get("state") == "Revoked"
    if (
        told
        and was.get("run") == allocation.get("run")
        and spec.get("preemption") == "Never"
        and not spec.get("suspend")
    ):
        yield f"run {was['run']} was told to leave, which its user forbids: {allocation.get('reason')}"
