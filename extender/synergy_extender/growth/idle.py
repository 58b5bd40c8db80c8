"""What autoscalers are told of nodes: which are in use, and which no job has needed for a while. Pure.

A node with a job, with a place that is planned for one, or with a pod that holds GPUs is in use. It is kept from
scale-down by the annotations of Cluster Autoscaler and Karpenter. A node that falls idle keeps them for
`idleSeconds`; then it is labelled idle.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from synergy_api.cluster.pool import Pool
from synergy_api.names import (
    ANNOTATION_DO_NOT_DISRUPT,
    ANNOTATION_IDLE_SINCE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    LABEL_IDLE,
)
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.trims import MARK_NAMES, MARKS
from synergy_extender.snapshot.node_groups import growing

Marks = Mapping[str, str]
"""Labels and annotations by name."""

IN_USE: Final[Marks] = {ANNOTATION_SCALE_DOWN_DISABLED: "true", ANNOTATION_DO_NOT_DISRUPT: "true"}


def in_use(state: ClusterState, assumed: Iterable[str], planned: Iterable[core.Allocation]) -> set[str]:
    """Nodes that somebody has or will have: by runs, pods, claims (DRA), bindings on their way, and planned places."""
    nodes = {*assumed, *(share.node for one in planned for share in one.workers)}
    for job in state.jobs.values():
        allocation = open_run(job)
        if allocation is not None:
            nodes |= {share.node for share in (*allocation.workers, *(allocation.planned or ()))}
    for node in state.pods.nodes():
        if any(pod.member is not None or pod.requests.gpus > 0 for pod in state.pods.on_node(node)):
            nodes.add(node)
    return nodes | {one.name for one in state.capacities if state.pods.claimed(one.name)}


def wanted_marks(state: ClusterState, used: set[str], now: float) -> dict[str, Marks]:
    """What each node of a growing pool should say, and nothing for other nodes that say something of ours."""
    pools: dict[str, tuple[Pool, int]] = {pool.name: (pool, how.idle_seconds) for pool, how in growing(state)}
    wanted: dict[str, Marks] = {}
    for one in state.capacities:
        marks = marks_on(state, one.name)
        if one.pool in pools:
            wanted[one.name] = IN_USE if one.name in used else _unused(marks, pools[one.pool][1], now)
        elif ANNOTATION_IDLE_SINCE in marks or LABEL_IDLE in marks:
            wanted[one.name] = {}
    return wanted


def _unused(marks: Marks, idle_s: int, now: float) -> Marks:
    since = _since(marks, now)
    told = {ANNOTATION_IDLE_SINCE: format_time(since)}
    return {**told, LABEL_IDLE: "true"} if now - since >= idle_s else {**told, **IN_USE}


def _since(marks: Marks, now: float) -> float:
    """Since when nobody needs the node, in whole seconds; a time that makes no sense begins anew."""
    try:
        since = parse_time(marks[ANNOTATION_IDLE_SINCE])
    except (KeyError, ValueError):
        return float(int(now))
    return since if since <= now else float(int(now))


def marks_on(state: ClusterState, node: str) -> Marks:
    """What the node says now."""
    given = state.nodes.get(node, {}).get(MARKS) or {}
    return {name: given[name] for name in MARK_NAMES if name in given}


def is_idle(marks: Marks) -> bool:
    """Whether autoscalers are told that the node is idle."""
    return LABEL_IDLE in marks


def node_patch(marks: Marks) -> dict[str, dict[str, dict[str, str]]]:
    """The Node with these marks, to apply."""
    labels = {name: value for name, value in marks.items() if name == LABEL_IDLE}
    annotations = {name: value for name, value in marks.items() if name != LABEL_IDLE}
    return {"metadata": {"labels": labels, "annotations": annotations}}
