"""Requests for nodes, as the API server has them."""

from dataclasses import dataclass

from synergy_api.cluster.nodes import Object, labels_of
from synergy_api.names import ANNOTATION_FAILURES, LABEL_POOL
from synergy_api.timestamps import parse_time

_FAILED = ("Failed", "CapacityRevoked")


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """One ProvisioningRequest of ours. Times are Unix times."""

    name: str
    pool: str
    nodes: int
    created: float
    failures: int = 0
    """Requests of the pool that have failed one after the other before this one."""
    provisioned: bool = False
    """The autoscaler has made the nodes; they may still have to start."""
    failed_at: float | None = None
    problem: str = ""
    """What the autoscaler says of the failure."""


def read_request(item: Object) -> NodeRequest | None:
    """The request; None where it is not one of ours, or makes no sense."""
    metadata, status = item["metadata"], item.get("status") or {}
    pool = labels_of(item).get(LABEL_POOL)
    if not pool:
        return None
    failures = (metadata.get("annotations") or {}).get(ANNOTATION_FAILURES, "0")
    try:
        created = parse_time(metadata["creationTimestamp"])
        nodes = sum(int(one["count"]) for one in item["spec"]["podSets"])
        holds = {one["type"]: one for one in status.get("conditions") or [] if one.get("status") == "True"}
        failed = next((holds[kind] for kind in _FAILED if kind in holds), None)
        failed_at = None if failed is None else parse_time(failed["lastTransitionTime"])
    except (KeyError, TypeError, ValueError):
        return None
    return NodeRequest(
        name=str(metadata["name"]),
        pool=pool,
        nodes=nodes,
        created=created,
        failures=min(int(failures), 100) if failures.isdecimal() else 0,
        provisioned="Provisioned" in holds,
        failed_at=failed_at,
        problem="" if failed is None else str(failed.get("message") or failed.get("reason") or failed["type"]),
    )
