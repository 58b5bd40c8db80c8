"""What would make a waiting job start: changes that are tried by planning the next round with each of them. Pure.

Only a change with which the planner gives the job GPUs is reported. `kubectl synergy what-if` shows what it does to
other jobs.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, Snapshot
from synergy_core.plan import plan
from synergy_view.words import count, cpus, gib

Kind = Literal["gpuTypes", "placement", "sharing", "cpu", "memory", "cpuAndMemory", "gpus", "node"]
_MOST_TYPES: Final = 8
"""GPU types that are tried, by name."""
_ADDED: Final = "added-by-what-would-help"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change with which the job starts in the next round."""

    kind: Kind
    told: str
    """The change, in words."""
    gets: str
    """What the job would get."""
    step: str = ""
    """The command that makes the change; empty where no command of the user does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """What was found out. `complete` is False where the time ended before all changes had been tried."""

    starts_anyway: bool = False
    """It starts in the next round as things are; nothing was tried."""
    remedies: tuple[Remedy, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class _Change:
    """A change that is tried."""

    kind: Kind
    told: str
    job: Job
    nodes: tuple[Node, ...]
    spec: dict[str, Any] | None = None
    """What the user would merge into the job's spec."""


def what_would_help(snapshot: Snapshot, config: PlanConfig, name: str, go_on: Callable[[], bool]) -> Help | None:
    """Plan the next round as it is, then with one change after the other; None where no plan considers the job.

    `name` is `NAMESPACE/NAME`. `go_on` is called before each plan: without time, nothing further is tried. Changes that
    the user can make come first.
    """
    job = next((one for one in snapshot.jobs if one.name == name), None)
    if job is None or job.running is not None or job.purpose != "train":
        return None
    config, memory = replace(config, mode="round", explain=False), Memory()
    if not go_on():
        return Help(complete=False)
    if _given(plan(snapshot, config, memory), name) is not None:
        return Help(starts_anyway=True)
    found: list[Remedy] = []
    for tries in _changes(snapshot, config, job):
        for change in tries:
            if not go_on():
                return Help(remedies=tuple(found), complete=False)
            jobs = tuple(change.job if one.name == name else one for one in snapshot.jobs)
            given = _given(plan(replace(snapshot, jobs=jobs, nodes=change.nodes), config, memory), name)
            if given is not None:
                found.append(_remedy(change, given))
                break
    return Help(remedies=tuple(found))


def _given(planned: Any, name: str) -> Allocation | None:
    return next((one for one in planned.allocations if one.job == name), None)


def _remedy(change: _Change, given: Allocation) -> Remedy:
    gpus = sum(share.gpus for share in given.workers)
    gets = f"{count(gpus, f'{given.gpu_type} GPU')} on {count(len(given.workers), 'node')}, "
    gets += f"{cpus(sum(share.cpu_millis for share in given.workers))} CPU, "
    gets += gib(sum(share.memory_bytes for share in given.workers))
    namespace, _, name = change.job.name.rpartition("/")
    step = ""
    if change.spec is not None:
        patch = json.dumps({"spec": change.spec}, separators=(",", ":"))
        step = f"kubectl patch trainingjob {name} -n {namespace} --type merge -p {shlex.quote(patch)}"
    return Remedy(kind=change.kind, told=change.told, gets=gets, step=step)


def _changes(snapshot: Snapshot, config: PlanConfig, job: Job) -> Iterator[Iterator[_Change]]:
    """Each kind of change with its variants. The first that helps is reported."""
    usable = [node for node in snapshot.nodes if node.schedulable and node.gpus]
    types = sorted({node.gpu_type for node in usable})[:_MOST_TYPES]
    yield from (iter([change]) for change in _other_types(snapshot, job, types))
    yield _placements(snapshot, job)
    yield _sharing(snapshot, config, job)
    yield _less(snapshot, job)
    yield _fewer_gpus(snapshot, job)
    for gpu_type in types:
        if not job.gpu_types or gpu_type in job.gpu_types:
            yield _one_node_more(snapshot, job, [node for node in usable if node.gpu_type == gpu_type])


def _other_types(snapshot: Snapshot, job: Job, types: list[str]) -> Iterator[_Change]:
    for other in types if job.gpu_types else ():
        if other not in job.gpu_types:
            allowed = (*job.gpu_types, other)
            changed = replace(job, gpu_types=allowed)
            yield _Change("gpuTypes", f"allow {other} too", changed, snapshot.nodes, {"gpuTypes": list(allowed)})


def _placements(snapshot: Snapshot, job: Job) -> Iterator[_Change]:
    if job.placement == "consolidate":
        changed = replace(job, placement="auto")
        yield _Change("placement", "allow several nodes", changed, snapshot.nodes, {"placement": "Auto"})


def _sharing(snapshot: Snapshot, config: PlanConfig, job: Job) -> Iterator[_Change]:
    """Only where the cluster shares GPUs and it is known what the job does to one."""
    if config.colocation == "none" or job.gpus > 1 or not job.preemptible or not job.usage:
        return
    if not job.sharing:
        changed = replace(job, sharing=True)
        yield _Change("sharing", "share a GPU", changed, snapshot.nodes, {"sharing": {"allowed": True}})
    if not job.sharing_across_tenants:
        changed = replace(job, sharing=True, sharing_across_tenants=True)
        spec = {"sharing": {"allowed": True, "acrossTenants": True}}
        yield _Change("sharing", "share a GPU with jobs of other tenants", changed, snapshot.nodes, spec)


def _less(snapshot: Snapshot, job: Job) -> Iterator[_Change]:
    """Without the least CPU, the least memory, or both."""
    less_cpu = replace(job, cpu_millis_min=0)
    if job.cpu_millis_min:
        told = f"ask for less than {cpus(job.cpu_millis_min)} CPU at least"
        yield _Change("cpu", told, less_cpu, snapshot.nodes, {"resources": {"min": {"cpu": None}}})
    if job.memory_bytes_min:
        told, changed = f"ask for less than {gib(job.memory_bytes_min)} at least", replace(job, memory_bytes_min=0)
        yield _Change("memory", told, changed, snapshot.nodes, {"resources": {"min": {"memory": None}}})
    if job.cpu_millis_min and job.memory_bytes_min:
        told = f"ask for less than {cpus(job.cpu_millis_min)} CPU and {gib(job.memory_bytes_min)} at least"
        changed = replace(less_cpu, memory_bytes_min=0)
        yield _Change("cpuAndMemory", told, changed, snapshot.nodes, {"resources": {"min": None}})


def _fewer_gpus(snapshot: Snapshot, job: Job) -> Iterator[_Change]:
    """Half of them, a quarter and so on. A job keeps its number for life, so the user submits another."""
    gpus = job.gpus // 2
    while gpus:
        profiles = snapshot.model_profiles.get(job.model, {}).get(str(gpus), {})
        changed = replace(job, gpus=gpus, profiles=profiles, measured={})
        yield _Change("gpus", f"submit it with {gpus} instead of {count(job.gpus, 'GPU')}", changed, snapshot.nodes)
        gpus //= 2


def _one_node_more(snapshot: Snapshot, job: Job, like: list[Node]) -> Iterator[_Change]:
    """An empty copy of a node that the job may use."""
    allowed = sorted((node for node in like if job.nodes is None or node.name in job.nodes), key=lambda one: one.name)
    for model in allowed[:1]:
        empty = dict.fromkeys(model.further, 0)
        new = replace(model, name=_ADDED, gpus_used=0, cpu_millis_used=0, memory_bytes_used=0, further_used=empty)
        changed = job if job.nodes is None else replace(job, nodes=(*job.nodes, _ADDED))
        told = f"one node more with {count(model.gpus, f'{model.gpu_type} GPU')}, which administrators can add"
        yield _Change("node", told, changed, (*snapshot.nodes, new))
