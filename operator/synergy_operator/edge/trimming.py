"""What the reflectors keep of each object instead of its JSON."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from synergy_api.cluster.slices import read_slice
from synergy_api.parts.relations.clusters import managed_elsewhere
from synergy_operator.views.job import JobView, read_job
from synergy_operator.views.metadata import Key

VIEW: Final = "view"
"""Key of the view in a trimmed object."""
_LOG = logging.getLogger(__name__)

Object = dict[str, Any]


def trimmed(read: Callable[[Mapping[str, Any]], Any]) -> Callable[[Object], Object]:
    """A function that replaces an object's JSON by its metadata and the view that `read` returns."""

    def trim(item: Object) -> Object:
        kept = kept_metadata(item)
        try:
            return {"metadata": kept, VIEW: read(item)}
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            _LOG.warning("%s/%s is not an object of kube-synergy: %r", kept["namespace"], kept["name"], error)
            return {"metadata": kept}

    return trim


def kept_metadata(item: Object) -> Object:
    """The metadata that a reflector needs."""
    metadata = item["metadata"]
    return {key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")}


def trim_job(item: Object, known_at: Callable[[Key], JobView | None]) -> Object:
    """The view of a TrainingJob instead of its JSON. A version that the answer to one of the operator's own writes has
    brought already is not parsed again. A job that another controller manages has no view: nothing acts on it."""
    kept = kept_metadata(item)
    if managed_elsewhere(item.get("spec") or {}):
        return {"metadata": kept}
    known = known_at((kept["namespace"], kept["name"]))
    if known is not None and (known.uid, known.resource_version) == (kept["uid"], kept["resourceVersion"]):
        return {"metadata": kept, VIEW: known}
    try:
        return {"metadata": kept, VIEW: read_job(item)}
    except (KeyError, TypeError, ValueError) as error:
        _LOG.error("TrainingJob %s/%s is skipped: %s", kept["namespace"], kept["name"], error)
        return {"metadata": kept}


def trim_node(node: Object) -> Object:
    """The parts of a Node that the operator reads."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    conditions = status.get("conditions") or []
    ready = [{"type": c["type"], "status": c.get("status")} for c in conditions if c.get("type") == "Ready"]
    return {
        "metadata": {
            key: metadata[key] for key in ("name", "resourceVersion", "labels", "deletionTimestamp") if key in metadata
        },
        "spec": {key: spec[key] for key in ("taints", "unschedulable") if key in spec},
        "status": {"allocatable": status.get("allocatable") or {}, "conditions": ready},
    }


def trim_slice(item: Object) -> Object:
    """The devices of a ResourceSlice."""
    metadata = item["metadata"]
    kept = {key: metadata[key] for key in ("name", "resourceVersion") if key in metadata}
    return {"metadata": kept, VIEW: read_slice(item)}


def node_facts(node: Object) -> tuple[Any, ...]:
    """The content of a trimmed node without its resourceVersion, for comparison."""
    metadata = {key: value for key, value in node["metadata"].items() if key != "resourceVersion"}
    return metadata, node["spec"], node["status"]
