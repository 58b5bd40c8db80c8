"""Which nodes keep failing jobs, from TrainingJobs' statuses and Node objects. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.names import ANNOTATION_FAILURES_CLEARED
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.scheduling_policy import FailingNodes
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_api.timestamps import format_time, parse_time
from synergy_core.selection.failing_nodes import (
    FailingNode,
    FailingNodeOptions,
    FailingState,
    NodeFailure,
    NodeRun,
    failing_nodes,
)


@dataclass(frozen=True, slots=True)
class JobRuns:
    """A job by NAMESPACE/NAME, and what its status says of its runs."""

    name: str
    uid: str
    status: TrainingJobStatus


def find_failing_nodes(
    jobs: Iterable[JobRuns],
    nodes: Iterable[Object],
    capacities: Iterable[NodeCapacity],
    options: FailingNodes,
    now: float,
    *,
    others: Iterable[JobRuns] = (),
) -> dict[str, FailingNode]:
    """The nodes that keep failing jobs at `now` (Unix seconds), by name. `others` are jobs that no node has failed:
    they are looked at only if a node is suspect."""
    known = list(jobs)
    cleared = {str(node["metadata"]["name"]): moment for node in nodes if (moment := _cleared_at(node)) is not None}
    failures = [one for job in known for one in _failures(job, cleared)]
    if not failures:
        return {}
    gpu_types = {one.name: one.gpu_type for one in capacities if one.gpu_type}
    runs = (run for job in chain(known, others) for run in _runs(job))
    return failing_nodes(failures, runs, gpu_types, options_of(options), now)


def options_of(options: FailingNodes) -> FailingNodeOptions:
    """The policy's options as the core takes them."""
    return FailingNodeOptions(
        jobs=options.jobs,
        within_s=float(options.within_seconds),
        retry_s=float(options.retry_seconds),
        probe_s=float(options.probe_seconds),
        max_percent=options.max_percent,
    )


def avoiding(capacities: Iterable[NodeCapacity], failing: Mapping[str, FailingNode]) -> list[NodeCapacity]:
    """The capacities, of which failing nodes take no job, or one at a time."""
    return [_kept_from(one, failing[one.name]) if one.name in failing else one for one in capacities]


def told(failing: FailingNode) -> Finding:
    """What is said of a failing node."""
    facts = {"node": failing.node, "jobs": len(failing.jobs), "names": ", ".join(failing.jobs[:_MOST_NAMES])}
    match failing.state:
        case FailingState.AVOIDED:
            return say(Reason.NODE_AVOIDED, until=format_time(round(failing.retry_at)), **facts)
        case FailingState.PROBING:
            return say(Reason.NODE_ON_TRIAL, trial=f"{failing.probe} tries it", **facts)
        case FailingState.RETRYING:
            return say(Reason.NODE_ON_TRIAL, trial="the next job tries it alone", **facts)
        case FailingState.REPORTED:
            return say(Reason.NODE_FAILS_JOBS, **facts)


_MOST_NAMES = 8


def _kept_from(capacity: NodeCapacity, failing: FailingNode) -> NodeCapacity:
    trial = failing.state in (FailingState.RETRYING, FailingState.PROBING)
    return replace(
        capacity,
        schedulable=capacity.schedulable and failing.takes_jobs,
        one_at_a_time=capacity.schedulable and trial,
    )


def _cleared_at(node: Object) -> float | None:
    """None too for a time that cannot be read: what an administrator did not say clearly, clears nothing."""
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_FAILURES_CLEARED)
    try:
        return None if text is None else parse_time(str(text))
    except ValueError:
        return None


def _failures(job: JobRuns, cleared: Mapping[str, float]) -> Iterator[NodeFailure]:
    service = job.status.service
    for one in service.node_failures if service is not None else ():
        at = parse_time(one.at)
        if at > cleared.get(one.node, float("-inf")):
            yield NodeFailure(job=job.name, program=job.status.fingerprint or job.uid, node=one.node, at=at)


def _runs(job: JobRuns) -> Iterator[NodeRun]:
    """The job's open run, on each of its nodes."""
    allocation, service = job.status.allocation, job.status.service
    if allocation is None or allocation.state == "Released":
        return
    if service is not None and service.ended_run >= allocation.run:
        return
    since = service.running_since if service is not None and service.run == allocation.run else None
    for share in allocation.workers:
        yield NodeRun(job=job.name, node=share.node, since=None if since is None else parse_time(since))
