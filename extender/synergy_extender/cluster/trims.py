"""What the extender keeps of each object that it watches."""

import logging
from typing import Any, Final

from synergy_api.amounts import DIMENSIONS, Amounts
from synergy_api.cluster.nodes import Object, labels_of
from synergy_api.names import (
    ANNOTATION_DO_NOT_DISRUPT,
    ANNOTATION_EMPTY_BY,
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
_RESOURCES: Final = (*(one.resource for one in DIMENSIONS), *GPU_RESOURCES)


def kept(item: Object) -> dict[str, Any]:
    """The metadata that every kept object has."""
    metadata = item["metadata"]
    return {field: metadata[field] for field in ("name", "namespace", "resourceVersion") if field in metadata}


def trim_pod(item: Object) -> dict[str, Any]:
    """The view of a pod."""
    return {"metadata": kept(item), VIEW: read_pod(item)}


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
    try:
        amounts = Amounts.parse(allocatable)
    except ValueError as error:
        _LOG.warning("node %s: status.allocatable: %s", metadata["name"], error)
        amounts = Amounts()
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
            "allocatable": {name: allocatable[name] for name in _RESOURCES if name in allocatable},
            "conditions": [
                {"type": c["type"], "status": c["status"]}
                for c in status.get("conditions") or []
                if c.get("type") == "Ready"
            ],
        },
        "amounts": amounts,
    }


def marks_of(item: Object) -> dict[str, str]:
    """What the node's labels and annotations tell autoscalers."""
    given = {**(item["metadata"].get("annotations") or {}), **labels_of(item)}
    return {name: given[name] for name in MARK_NAMES if name in given}


def _annotations(metadata: Object) -> dict[str, Any]:
    """When the node must be empty; nothing else, as other annotations change all the time."""
    empty_by = (metadata.get("annotations") or {}).get(ANNOTATION_EMPTY_BY)
    return {} if empty_by is None else {"annotations": {ANNOTATION_EMPTY_BY: empty_by}}


def said(item: Object | None) -> Object | None:
    """What a Tenant's or Namespace's author said: its status and bookkeeping are no change."""
    return None if item is None else {"spec": item.get("spec"), "labels": labels_of(item)}


def facts(node: Object | None) -> Object | None:
    """What plans depend on of a node that is kept: not its version, nor what it tells autoscalers."""
    return None if node is None else {**node, "metadata": {**node["metadata"], "resourceVersion": ""}, MARKS: {}}
