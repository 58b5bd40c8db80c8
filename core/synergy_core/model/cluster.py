"""The nodes that a plan counts with."""

from synergy_core.model.config import Mode
from synergy_core.model.resources import with_more_used
from synergy_core.model.snapshot import Node, Snapshot


def nodes_of(snapshot: Snapshot, mode: Mode) -> tuple[Node, ...]:
    """The nodes with what is used on them: in fill mode also by jobs that started when a node had another GPU type."""
    return _with_unplanned_pods(snapshot) if mode == "fill" else snapshot.nodes


def _with_unplanned_pods(snapshot: Snapshot) -> tuple[Node, ...]:
    """The nodes; what jobs hold that started when a node had another GPU type counts as held by others."""
    nodes = {node.name: node for node in snapshot.nodes}
    for job in snapshot.jobs:
        for share in job.running.workers if job.running is not None else ():
            node = nodes.get(share.node)
            if job.running is not None and node is not None and node.gpu_type != job.running.gpu_type:
                nodes[share.node] = with_more_used(node, share)
    return tuple(nodes.values())
