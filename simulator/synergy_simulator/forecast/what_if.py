"""The effect of a new job, added or removed nodes, or another policy: two futures side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import fmean
from typing import Any

from synergy_core.model.config import PlanConfig
from synergy_core.model.config.format import config_of_document
from synergy_core.model.snapshot import FieldError, Job, Node, PastJob, Snapshot
from synergy_simulator.engine.options import Options
from synergy_simulator.forecast.forecast import Forecaster, Times
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.quantiles import Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change to simulate."""

    add_jobs: Sequence[Job] = ()
    add_nodes: Mapping[str, int] = field(default_factory=dict)
    """Number of nodes to add, by the name of a node to copy or by GPU type."""
    remove_nodes: Sequence[str] = ()
    """Removed nodes. Their jobs lose their GPUs and wait."""
    drain_nodes: Sequence[str] = ()
    """Cordoned nodes. They get no new jobs, and running jobs stay."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options of the planner by path, and `round_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Future:
    """One future. Times in seconds. Sums leave out jobs that do not end."""

    times: Times
    avg_jct_s: float
    """Mean time from arrival to end of the snapshot's jobs, without added jobs."""
    makespan_s: float
    """Time from now to the end of the last job."""
    gpu_utilization: float
    """GPU-seconds of all jobs from now on, divided by the GPUs of the cluster and the makespan."""


def changed(snapshot: Snapshot, change: Change) -> Snapshot:
    """The snapshot with the change. Raises FieldError naming the option and what is wrong with it."""
    nodes = list(snapshot.nodes)
    for name in (*change.remove_nodes, *change.drain_nodes):
        if all(node.name != name for node in nodes):
            known = ", ".join(sorted(node.name for node in nodes)[:10])
            raise FieldError("--remove-node", f"there is no node {name!r}; there are {known}")
    nodes = [node for node in nodes if node.name not in change.remove_nodes]
    nodes = [replace(node, schedulable=False) if node.name in change.drain_nodes else node for node in nodes]
    for like, count in dict(change.add_nodes).items():
        nodes += _added(snapshot.nodes, like, count)
    names = {job.name for job in snapshot.jobs}
    for job in change.add_jobs:
        if job.name in names:
            raise FieldError("--add-job", f"there is a job {job.name!r} already; give it another name")
    gone = set(change.remove_nodes)
    jobs = tuple(_without(job, gone) for job in snapshot.jobs)
    return replace(snapshot, nodes=tuple(nodes), jobs=(*jobs, *change.add_jobs))


def _added(nodes: Sequence[Node], like: str, count: int) -> list[Node]:
    """`count` copies of the first node of this name, GPU type or pool (the name without its number)."""
    found = [node for node in nodes if like in (node.name, node.gpu_type, node.name.rpartition("-")[0])]
    if not found:
        known = ", ".join(sorted({node.gpu_type for node in nodes}))
        raise FieldError("--add-nodes", f"no node is like {like!r}; name a node, a pool or one of the types {known}")
    model = replace(found[0], gpus_used=0, cpu_millis_used=0, memory_bytes_used=0, further_used={}, schedulable=True)
    return [replace(model, name=f"{like}-added-{index}") for index in range(1, count + 1)]


def _without(job: Job, gone: set[str]) -> Job:
    if job.running is None or not any(worker.node in gone for worker in job.running.workers):
        return job
    return replace(job, running=None, run_started_s=None, resumes_s=None)


def options_of_change(snapshot: Snapshot, change: Change) -> tuple[Options, Options]:
    """The planner's options without and with the change. Raises FieldError naming the option."""
    as_is = options_of_snapshot(snapshot)
    settings = dict(change.config)
    round_s = settings.pop("round_s", as_is.round_s)
    if not isinstance(round_s, int | float) or not 0 < round_s < inf:
        raise FieldError("config.round_s", f"must be above 0 and finite, is {round_s!r}")
    plan: PlanConfig = config_of_document(settings, as_is.plan)
    return as_is, replace(as_is, plan=plan, round_s=float(round_s))


def what_if(
    snapshot: Snapshot,
    change: Change,
    history: Sequence[PastJob] = (),
    *,
    draws: int = 20,
    seed: int = 0,
    horizon_s: float | None = None,
    between: Callable[[], None] = lambda: None,
) -> tuple[Future, Future]:
    """The futures without and with the change. They have no arrivals, or with `history` the median of draws. `between`
    is called once the first is found. Raises FieldError naming the wrong option."""
    as_is, other = options_of_change(snapshot, change)
    after = replace(changed(snapshot, change), round_s=other.round_s)
    own = {job.name for job in snapshot.jobs}
    first = _future(snapshot, as_is, history, own, draws=draws, seed=seed, horizon_s=horizon_s)
    between()
    return first, _future(after, other, history, own, draws=draws, seed=seed, horizon_s=horizon_s)


def compared(before: Snapshot, after: Snapshot) -> tuple[Future, Future]:
    """The futures of two snapshots without arrivals, each by its own `config`. Raises FieldError naming the wrong key
    of `config`."""
    own = {job.name for job in before.jobs}
    found = [
        _future(one, options_of_snapshot(one), (), own, draws=1, seed=0, horizon_s=None) for one in (before, after)
    ]
    return found[0], found[1]


def _future(
    snapshot: Snapshot,
    options: Options,
    history: Sequence[PastJob],
    own: set[str],
    *,
    draws: int,
    seed: int,
    horizon_s: float | None,
) -> Future:
    forecaster = Forecaster(snapshot, options, history, horizon_s=horizon_s)
    times = forecaster.alone
    if history and forecaster.past.tasks:
        drawn = [forecaster.draw(f"{seed} {index}") for index in range(draws)]
        times = {
            name: (Quantiles.of([one[name][0] for one in drawn]).p50, Quantiles.of([one[name][1] for one in drawn]).p50)
            for name in times
        }
    jobs = {job.name: job for job in snapshot.jobs}
    ended = {name: end for name, (_, end) in times.items() if end < inf}
    makespan = max(ended.values(), default=snapshot.now) - snapshot.now
    jcts = [end - jobs[name].arrival_s for name, end in ended.items() if name in own]
    gpus = sum(node.gpus for node in snapshot.nodes)
    return Future(
        times=times,
        avg_jct_s=fmean(jcts) if jcts else 0.0,
        makespan_s=makespan,
        gpu_utilization=min(1.0, forecaster.gpu_s / (gpus * makespan)) if gpus and makespan > 0 else 0.0,
    )


def document(as_is: Future, other: Future, *, seconds: float) -> dict[str, Any]:
    """The JSON form; `seconds` is how long it took, measured by the caller."""
    names = sorted(as_is.times.keys() | other.times.keys())
    return {
        "as_is": _sums(as_is),
        "what_if": _sums(other),
        "jobs": [
            {"job": name, "start_s": _pair(as_is, other, name, 0), "finish_s": _pair(as_is, other, name, 1)}
            for name in names
        ],
        "seconds": seconds,
    }


def _sums(one: Future) -> dict[str, float]:
    return {"avg_jct_s": one.avg_jct_s, "makespan_s": one.makespan_s, "gpu_utilization": one.gpu_utilization}


def _pair(as_is: Future, other: Future, name: str, place: int) -> list[float | None]:
    found = (one.times.get(name, (inf, inf))[place] for one in (as_is, other))
    return [value if value < inf else None for value in found]
