"""The owner of the headless Service whose name a job's workers need."""

from enum import StrEnum, auto
from typing import Any

from synergy_api.names import LABEL_JOB
from synergy_operator.actions import Manifest
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Object


class Holder(StrEnum):
    """Who owns the Service of that name."""

    OURS = auto()
    """This job, and the Service is as it must be."""
    OUTDATED = auto()
    """This job, but the Service differs from what the job needs."""
    EARLIER = auto()
    """A deleted job of the same name, or a Service in deletion: the garbage collector is about to remove it."""
    FOREIGN = auto()
    """Somebody else. The operator never changes such a Service."""


def holder(found: Object, wanted: Manifest, job: JobView) -> Holder:
    """The owner of the Service `found`, which has the name of `wanted`, the Service that `job` needs."""
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
