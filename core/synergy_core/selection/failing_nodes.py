"""Which nodes keep failing jobs, and which of them no job is placed on for now.

- A program that fails on several nodes is at fault itself: its failures count for no node.
- A node on which several other jobs have failed lately is avoided for a time. Then one job may try it.
- Where many nodes of a GPU type look so, the cause is elsewhere, such as in the storage: only the worst are avoided.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class FailingState(StrEnum):
    """What plans do with a node that keeps failing jobs."""

    AVOIDED = "Avoided"
    """It takes no job before `retry_at`."""
    RETRYING = "Retrying"
    """It takes one job as a trial."""
    PROBING = "Probing"
    """One job has begun there. It takes no other until that has run for a while."""
    REPORTED = "Reported"
    """It takes jobs: as many nodes of its type as may be are avoided already."""


@dataclass(frozen=True, slots=True)
class FailingNodeOptions:
    """When a node is avoided. Times in seconds."""

    jobs: int = 3
    """Jobs that must have failed there; 0 avoids no node."""
    within_s: float = 21600.0
    """For how long a failure counts."""
    retry_s: float = 1800.0
    """How long after its last failure the node takes a job again."""
    probe_s: float = 600.0
    """How long that job must run until the node takes others."""
    max_percent: int = 10
    """Of a GPU type's nodes, how many may be avoided at once; one of at least two always may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailure:
    """A run that failed on a node, at `at` seconds. Jobs of one `program` run the same thing."""

    job: str
    program: str
    node: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """A run that holds GPUs of a node. `since` is when its workers began, in seconds; None before that."""

    job: str
    node: str
    since: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingNode:
    """A node that keeps failing jobs."""

    node: str
    state: FailingState
    jobs: tuple[str, ...]
    """Jobs that failed there, by name."""
    last_failure_at: float
    retry_at: float
    probe: str = ""
    """The job that tries it."""

    @property
    def takes_jobs(self) -> bool:
        """Whether any job may be placed there now."""
        return self.state in (FailingState.RETRYING, FailingState.REPORTED)


def failing_nodes(
    failures: Iterable[NodeFailure],
    runs: Iterable[NodeRun],
    gpu_types: Mapping[str, str],
    options: FailingNodeOptions,
    now: float,
) -> dict[str, FailingNode]:
    """The nodes that keep failing jobs, by name. `gpu_types` has all nodes with GPUs; `now` is in seconds.

    A failure shortly after `now` is of a clock that is ahead, and counts as one at `now`. Later ones do not count.
    """
    if not options.jobs:
        return {}
    blamed = _blamed(failures, gpu_types, options, now)
    suspects = {node: jobs for node, jobs in blamed.items() if len(jobs) >= options.jobs}
    if not suspects:
        return {}
    avoidable = _worst(suspects, gpu_types, options.max_percent)
    by_node: dict[str, list[NodeRun]] = defaultdict(list)
    for run in runs:
        by_node[run.node].append(run)
    found: dict[str, FailingNode] = {}
    for node in sorted(suspects):
        one = _judged(node, suspects[node], by_node[node], options, now, may_avoid=node in avoidable)
        if one is not None:
            found[node] = one
    return found


def _blamed(
    failures: Iterable[NodeFailure], gpu_types: Mapping[str, str], options: FailingNodeOptions, now: float
) -> dict[str, dict[str, float]]:
    """When each job last failed on each node, without the programs that failed on several nodes."""
    since, until = now - options.within_s, now + options.retry_s
    recent = [one for one in failures if one.node in gpu_types and since < one.at <= until]
    places: dict[str, set[str]] = defaultdict(set)
    for one in recent:
        places[one.program].add(one.node)
    blamed: dict[str, dict[str, float]] = defaultdict(dict)
    for one in recent:
        if len(places[one.program]) == 1:
            jobs = blamed[one.node]
            jobs[one.job] = max(jobs.get(one.job, 0.0), min(one.at, now))
    return blamed


def _worst(
    suspects: Mapping[str, Mapping[str, float]], gpu_types: Mapping[str, str], max_percent: int
) -> frozenset[str]:
    """Those that may be avoided: of each GPU type the ones that failed the most jobs, and never all of its nodes."""
    sizes = Counter(gpu_types.values())
    taken: Counter[str] = Counter()
    chosen: set[str] = set()
    for node in sorted(suspects, key=lambda name: (-len(suspects[name]), name)):
        gpu_type = gpu_types[node]
        nodes = sizes[gpu_type]
        if taken[gpu_type] < min(max(1, nodes * max_percent // 100), nodes - 1):
            taken[gpu_type] += 1
            chosen.add(node)
    return frozenset(chosen)


def _judged(
    node: str,
    jobs: Mapping[str, float],
    runs: Iterable[NodeRun],
    options: FailingNodeOptions,
    now: float,
    *,
    may_avoid: bool,
) -> FailingNode | None:
    """None for a node that a job has tried since, and runs well."""
    last = max(jobs.values())
    retry_at = last + options.retry_s
    tried = [run for run in runs if run.since is None or run.since > last]
    if any(run.since is not None and now - run.since >= options.probe_s for run in tried):
        return None
    state, probe = FailingState.AVOIDED, ""
    if not may_avoid:
        state = FailingState.REPORTED
    elif now >= retry_at:
        probe = min((run.job for run in tried), default="")
        state = FailingState.PROBING if probe else FailingState.RETRYING
    return FailingNode(
        node=node, state=state, jobs=tuple(sorted(jobs)), last_failure_at=last, retry_at=retry_at, probe=probe
    )
