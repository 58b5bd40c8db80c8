"""What the recorder keeps of a TrainingJob."""

from collections.abc import Iterable, Mapping
from typing import Any

from synergy_dashboard.store.bundle import Object

_METADATA = ("namespace", "name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_SPEC = ("gpus", "gpuTypes", "steps", "epochs", "maxRunSeconds", "tenant", "weight")
_STATUS = ("phase", "service", "completionTime", "allocation", "queue", "preemptions")
_PROGRESS = ("run", "steps", "stepsPerSecond", "epochSteps", "trainedSeconds", "metrics", "updatedAt")
_PROFILE = ("state", "fingerprint")


def trim(item: Object) -> Object:
    """The parts of a TrainingJob that facts need. The result is still a valid TrainingJob."""
    status = item.get("status") or {}
    parts = {"progress": _PROGRESS, "profile": _PROFILE}
    return {
        "metadata": _only(item["metadata"], _METADATA),
        "spec": _only(item.get("spec") or {}, _SPEC) | {"template": {}},
        "status": _only(status, _STATUS)
        | {part: _only(status[part], fields) for part, fields in parts.items() if status.get(part)},
    }


def _only(fields: Mapping[str, Any], names: Iterable[str]) -> Object:
    return {name: fields[name] for name in names if name in fields}
