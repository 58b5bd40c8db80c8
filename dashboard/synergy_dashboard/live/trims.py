"""The parts of watched objects that the dashboard keeps. It drops templates, matrices and managed fields, which are the
largest."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from synergy_api.cluster.nodes import Object, labels_of
from synergy_api.devices import is_extended
from synergy_view.seen import SeenJob, read

_LOG = logging.getLogger(__name__)
_JOB: Final = "job"
_UNREAD_STATUS: Final = frozenset({"workers", "marks", "estimates", "summary", "sizeLimits"})
_UNREAD_PROFILE: Final = frozenset({"matrices", "demand", "confidence", "usage", "request"})
_UNREAD_PROGRESS: Final = frozenset({"placements", "measured", "shared", "gpuUUIDs", "gpuPartners"})
_RESOURCES: Final = ("cpu", "memory")


def kept(item: Object) -> dict[str, Any]:
    """The metadata that every kept object has."""
    metadata = item["metadata"]
    return {field: metadata[field] for field in ("name", "namespace", "uid", "resourceVersion") if field in metadata}


def trim_job(item: Object) -> dict[str, Any]:
    """The fields of the job that its rows need; none if this version cannot read the job."""
    try:
        return {"metadata": kept(item), _JOB: read(_without_bulk(item))}
    except ValueError as error:
        metadata = item["metadata"]
        _LOG.warning("TrainingJob %s/%s is left out: %s", metadata.get("namespace"), metadata["name"], error)
        return {"metadata": kept(item)}


def job_of(item: Mapping[str, Any] | None) -> SeenJob | None:
    """The job of a trimmed object."""
    job = item.get(_JOB) if item is not None else None
    return job if isinstance(job, SeenJob) else None


def trim_node(item: Object) -> dict[str, Any]:
    """The resources and taints of a node, without the heartbeat, which changes all the time."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    deleting = {"deletionTimestamp": metadata["deletionTimestamp"]} if metadata.get("deletionTimestamp") else {}
    allocatable = status.get("allocatable") or {}
    conditions = [one for one in status.get("conditions") or [] if one.get("type") == "Ready"]
    return {
        "metadata": {**kept(item), "labels": dict(labels_of(item)), **deleting},
        "spec": {field: spec[field] for field in ("taints", "unschedulable") if field in spec},
        "status": {
            "allocatable": {n: amount for n, amount in allocatable.items() if n in _RESOURCES or is_extended(n)},
            "conditions": [{"type": one["type"], "status": one["status"]} for one in conditions],
        },
    }


def trim_plain(item: Object) -> dict[str, Any]:
    """An object without its managed fields."""
    trimmed = {field: item[field] for field in ("spec", "status") if field in item}
    return {"metadata": kept(item), **trimmed}


def said_by_node(item: Mapping[str, Any] | None) -> object:
    """The part of a trimmed node whose change matters."""
    return None if item is None else ({**item["metadata"], "resourceVersion": ""}, item["spec"], item["status"])


def _without_bulk(item: Object) -> Object:
    spec, status = item["spec"], item.get("status") or {}
    lean_spec = {**spec, "template": {}}
    if "profile" in spec:
        lean_spec["profile"] = _without(spec["profile"], ("matrices",))
    lean_status = _without(status, _UNREAD_STATUS)
    if "profile" in lean_status:
        lean_status["profile"] = _without(lean_status["profile"], _UNREAD_PROFILE)
    if "progress" in lean_status:
        lean_status["progress"] = _without(lean_status["progress"], _UNREAD_PROGRESS)
    return {"metadata": item["metadata"], "spec": lean_spec, "status": lean_status}


def _without(item: Any, fields: Iterable[str]) -> Any:
    """The object without these fields. A value that is no object stays, and its reader reports it."""
    return {field: value for field, value in item.items() if field not in fields} if isinstance(item, dict) else item
