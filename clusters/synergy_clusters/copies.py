"""The TrainingJob that a worker cluster gets. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from synergy_api.names import (
    ANNOTATION_HUB_GENERATION,
    ANNOTATION_HUB_JOB_UID,
    ANNOTATION_MAY_START,
    ANNOTATION_OFFER,
    GROUP,
    LABEL_HUB,
)
from synergy_clusters.views import HubJob

_HUB_ONLY: Final = ("managedBy", "ttlSecondsAfterFinished")
"""The hub deletes a job some time after its end, and with it the copy."""
_NOT_COPIED: Final = (f"{GROUP}/", "kubectl.kubernetes.io/")


def copied_spec(job: HubJob) -> dict[str, Any]:
    """The spec of the copy."""
    return {field: value for field, value in job.item["spec"].items() if field not in _HUB_ONLY}


def manifest(job: HubJob, hub: str, offer: int) -> dict[str, Any]:
    """The copy that an offer makes. It may not start."""
    metadata = job.item["metadata"]
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {**_of_user(metadata.get("labels") or {}), LABEL_HUB: hub},
            "annotations": {
                **_of_user(metadata.get("annotations") or {}),
                ANNOTATION_HUB_JOB_UID: job.uid,
                ANNOTATION_HUB_GENERATION: str(job.generation),
                ANNOTATION_OFFER: str(offer),
            },
        },
        "spec": copied_spec(job),
    }


def permit(uid: str, offer: int) -> dict[str, Any]:
    """The merge patch that lets this very copy start."""
    return {"metadata": {"uid": uid, "annotations": {ANNOTATION_MAY_START: str(offer)}}}


def update(job: HubJob, item: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that gives the copy `item` the hub's spec."""
    metadata = item["metadata"]
    return {
        "metadata": {"uid": metadata["uid"], "annotations": {ANNOTATION_HUB_GENERATION: str(job.generation)}},
        "spec": difference(item["spec"], copied_spec(job)),
    }


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7386) from the one to the other."""
    changed: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for field, value in after.items():
        old = before.get(field)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            inner = difference(old, value)
            changed |= {field: inner} if inner else {}
        elif old != value or field not in before:
            changed[field] = value
    return changed


def _of_user(texts: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in texts.items() if not key.startswith(_NOT_COPIED)}
