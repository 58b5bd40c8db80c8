"""Whose headless Service has the name that a job's workers need. Pure."""

from collections.abc import Mapping
from enum import StrEnum, auto
from typing import Any

from synergy_api.names import LABEL_JOB
from synergy_operator.actions import Manifest
from synergy_operator.views.job import JobView

Object = Mapping[str, Any]


class Holder(StrEnum):
    """Who holds the Service's name."""

    OURS = auto()
    """This job, with all that it needs."""
    OUTDATED = auto()
    """This job, but the Service differs from what it needs."""
    EARLIER = auto()
    """This job or a deleted one of the same name; the garbage collector is about to remove the Service."""
    FOREIGN = auto()
    """Somebody else. Nothing of ours may touch it."""


def holder(found: Object, wanted: Manifest, job: JobView) -> Holder:
    """Who holds the Service `found`, which has the name of `wanted`, the Service that `job` needs."""
    metadata = found["metadata"]
    owner: Object = next((o for o in metadata.get("ownerReferences") or [] if o.get("controller")), {})
    if (owner.get("kind"), owner.get("name")) != ("TrainingJob", job.name):
        return Holder.FOREIGN
    if owner.get("uid") != job.uid or "deletionTimestamp" in metadata:
        return Holder.EARLIER
    return Holder.OURS if _fits(found, wanted) else Holder.OUTDATED


def _fits(found: Object, wanted: Manifest) -> bool:
    spec, asked = found.get("spec") or {}, wanted["spec"]
    same = all(spec.get(field) == asked[field] for field in ("clusterIP", "publishNotReadyAddresses", "selector"))
    label = (found["metadata"].get("labels") or {}).get(LABEL_JOB)
    return same and label == wanted["metadata"]["labels"][LABEL_JOB] and _ports(spec) == _ports(asked)


def _ports(spec: Object) -> list[tuple[Any, ...]]:
    ports = spec.get("ports") or []
    return [(port.get("name"), port.get("port"), port.get("protocol", "TCP")) for port in ports]
