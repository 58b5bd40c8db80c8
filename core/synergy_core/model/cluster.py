"""The nodes that a plan counts with."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from synergy_core.model.config import Mode
from synergy_core.model.resources import with_all_used_but, with_more_used
from synergy_core.model.snapshot import Node, NodeShare, Snapshot


def nodes_of(snapshot: Snapshot, mode: Mode) -> tuple[Node, ...]:
    """The nodes with what is used on them.

    In fill mode that is also what jobs hold that started when a node had another GPU type. Nodes that must be empty
    before another round ends take no job, and at a round's end keep only those that no plan moves.
    """
    nodes = _with_unplanned_pods(snapshot) if mode == "fill" else snapshot.nodes
    closing = {node.name for node in nodes if closes(node, snapshot)}
    if not closing:
        return nodes
    staying = _never_moved(snapshot) if mode == "round" else None
    return tuple(_closed(node, staying) if node.name in closing else node for node in nodes)


def closes(node: Node, snapshot: Snapshot) -> bool:
    """Whether the node must be empty before another round ends, or is closed already."""
    if node.empty_by is None or node.empty_by >= snapshot.now + snapshot.round_s:
        return False
    return node.reopens_at is None or snapshot.now < node.reopens_at


def _closed(node: Node, staying: Mapping[str, Iterable[NodeShare]] | None) -> Node:
    """Without room for anything new; in a round's plan, without room for what is there but may leave."""
    closed = replace(node, schedulable=False)
    return closed if staying is None else with_all_used_but(closed, staying.get(node.name, ()))


def _never_moved(snapshot: Snapshot) -> Mapping[str, list[NodeShare]]:
    """What profile runs and jobs that are never preempted hold, by node."""
    held: dict[str, list[NodeShare]] = defaultdict(list)
    for job in snapshot.jobs:
        if job.running is not None and (not job.preemptible or job.purpose == "profile"):
            for share in job.running.workers:
                held[share.node].append(share)
    return held


def _with_unplanned_pods(snapshot: Snapshot) -> tuple[Node, ...]:
    """The nodes; what jobs hold that started when a node had another GPU type counts as held by others."""
    nodes = {node.name: node for node in snapshot.nodes}
    for job in snapshot.jobs:
        for share in job.running.workers if job.running is not None else ():
            node = nodes.get(share.node)
            if job.running is not None and node is not None and node.gpu_type != job.running.gpu_type:
                nodes[share.node] = with_more_used(node, share)
    return tuple(nodes.values())
