"""What the extender keeps of each object that it watches."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

from synergy_api.amounts import DIMENSIONS, Amounts
from synergy_api.cluster.nodes import Object, labels_of
from synergy_api.cluster.pool import Pool, offered_amounts
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.cluster.slices import held_devices, read_slice
from synergy_api.devices import is_extended
from synergy_api.names import (
    ANNOTATION_DO_NOT_DISRUPT,
    ANNOTATION_EMPTY_BY,
    ANNOTATION_FAILURES_CLEARED,
    ANNOTATION_IDLE_SINCE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    GPU_RESOURCES,
    LABEL_IDLE,
    LABEL_JOB,
    service_name,
)
from synergy_extender.cluster.quota_views import read_quota
from synergy_extender.cluster.views import read_pod

_LOG = logging.getLogger(__name__)
VIEW: Final = "view"
"""The key of an object's typed view in what is kept of it."""
MARKS: Final = "marks"
"""The key of what a node tells autoscalers, in what is kept of it."""
MARK_NAMES: Final = (
    LABEL_IDLE,
    ANNOTATION_IDLE_SINCE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_DO_NOT_DISRUPT,
)
_DIMENSIONS: Final = frozenset(one.resource for one in DIMENSIONS)


def kept(item: Object) -> dict[str, Any]:
    """The metadata that every kept object has."""
    metadata = item["metadata"]
    return {field: metadata[field] for field in ("name", "namespace", "resourceVersion") if field in metadata}


def trim_pod(item: Object) -> dict[str, Any]:
    """The view of a pod."""
    return {"metadata": kept(item), VIEW: read_pod(item)}


def trim_slice(item: Object) -> dict[str, Any]:
    """The devices of a ResourceSlice."""
    return {"metadata": kept(item), VIEW: read_slice(item)}


def trim_claim(item: Object) -> dict[str, Any]:
    """The devices that a ResourceClaim holds."""
    return {"metadata": kept(item), VIEW: held_devices(item)}


def trim_quota(item: Object) -> dict[str, Any]:
    """The view of a ResourceQuota."""
    return {"metadata": kept(item), VIEW: read_quota(item)}


def trim_service(item: Object) -> dict[str, Any]:
    """Which job's it is, where it has the name that the operator gives it."""
    job = labels_of(item).get(LABEL_JOB, "")
    return {"metadata": kept(item), "job": job if item["metadata"]["name"] == service_name(job) else ""}


def trim_namespace(item: Object) -> dict[str, Any]:
    """The labels, by which Tenants select namespaces."""
    return {"metadata": {**kept(item), "labels": dict(labels_of(item))}}


def trim_priority_class(item: Object) -> dict[str, Any]:
    """Value, and what administrators mark it with."""
    metadata = {**kept(item), "labels": dict(labels_of(item)), "annotations": item["metadata"].get("annotations") or {}}
    fields = {field: item[field] for field in ("value", "globalDefault", "preemptionPolicy") if field in item}
    return {"metadata": metadata, **fields}


def trim_node(item: Object) -> dict[str, Any]:
    """What a node offers and whom it admits; without the heartbeat, which changes all the time."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    deleting = {"deletionTimestamp": metadata["deletionTimestamp"]} if metadata.get("deletionTimestamp") else {}
    allocatable = status.get("allocatable") or {}
    return {
        "metadata": {
            **kept(item),
            "labels": {name: value for name, value in labels_of(item).items() if name != LABEL_IDLE},
            **{field: metadata[field] for field in ("creationTimestamp",) if field in metadata},
            **_annotations(metadata),
            **deleting,
        },
        MARKS: marks_of(item),
        "spec": {field: spec[field] for field in ("taints", "unschedulable") if field in spec},
        "status": {
            "allocatable": {n: amount for n, amount in allocatable.items() if n in _DIMENSIONS or is_extended(n)},
            "conditions": [
                {"type": c["type"], "status": c["status"]}
                for c in status.get("conditions") or []
                if c.get("type") == "Ready"
            ],
        },
        "amounts": _offered(item, GPU_RESOURCES),
    }


def marks_of(item: Object) -> dict[str, str]:
    """What the node's labels and annotations tell autoscalers."""
    given = {**(item["metadata"].get("annotations") or {}), **labels_of(item)}
    return {name: given[name] for name in MARK_NAMES if name in given}


def _offered(node: Object, gpu_resources: Sequence[str], pool: Pool | None = None) -> Amounts:
    """What the node can give to pods, with the GPUs of those names; nothing where a quantity does not parse."""
    try:
        return offered_amounts(node, pool, gpu_resources)
    except ValueError as error:
        _LOG.warning("node %s: %s", node["metadata"]["name"], error)
        return Amounts()


def _annotations(metadata: Object) -> dict[str, Any]:
    """What administrators say of the node; nothing else, as other annotations change all the time."""
    written = metadata.get("annotations") or {}
    said = {name: written[name] for name in (ANNOTATION_EMPTY_BY, ANNOTATION_FAILURES_CLEARED) if name in written}
    return {"annotations": said} if said else {}


def allocatable(
    nodes: Iterable[Object], capacities: Iterable[NodeCapacity], pools: Iterable[Pool]
) -> dict[str, Amounts]:
    """What each node can give to pods, with the GPUs that its pool plans."""
    by_name, named = {one.name: one for one in capacities}, {pool.name: pool for pool in pools}
    found = {}
    for node in nodes:
        name = node["metadata"]["name"]
        one = by_name.get(name)
        if one is None or one.gpu_resources == GPU_RESOURCES:
            found[name] = node["amounts"]
        else:
            found[name] = _offered(node, one.gpu_resources, named.get(one.pool or ""))
    return found


def said_by_author(item: Object | None) -> Object | None:
    """What a Tenant's or Namespace's author said: its status and bookkeeping are no change."""
    return None if item is None else {"spec": item.get("spec"), "labels": labels_of(item)}


def without_version(node: Object | None) -> Object | None:
    """What is kept of a node but for its version, which each heartbeat changes."""
    return None if node is None else {**node, "metadata": {**node["metadata"], "resourceVersion": ""}}


def facts_of_node(node: Object | None) -> Object | None:
    """What plans depend on of a node that is kept: not its version, nor what it tells autoscalers."""
    said = without_version(node)
    return None if said is None else {**said, MARKS: {}}


def facts_of_policy(policy: Object | None) -> Object | None:
    """What plans depend on of a policy: not the rest of its status, which the leader writes in every round."""
    if policy is None:
        return None
    return {"spec": policy.get("spec"), "history": (policy.get("status") or {}).get("history")}
