"""TrainingJobs as the operator keeps them between two reconciles: as JSON, a tenth of the size of a view."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from pydantic import Field, ValidationError

from synergy_api.amounts import Amounts
from synergy_api.base import ApiModel
from synergy_api.names import ANNOTATION_MAY_START, ANNOTATION_OFFER, LABEL_ARRAY_INDEX, LABEL_HUB
from synergy_api.parts.progress import Progress
from synergy_api.resources.training_job import FINISHED
from synergy_operator.views.job import (
    JobView,
    is_too_large,
    parse_job,
    without_large_template,
    without_what_is_for_people,
)
from synergy_operator.views.metadata import Key, Object

_METADATA: Final = (
    "namespace",
    "name",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
)
_MARKS: Final = {
    "labels": frozenset({LABEL_ARRAY_INDEX, LABEL_HUB}),
    "annotations": frozenset({ANNOTATION_OFFER, ANNOTATION_MAY_START}),
}
"""Labels and annotations that decisions follow from."""
_PLACED: Final = ("Granted", "Revoked")
"""States of an allocation that holds its place."""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A TrainingJob as JSON, and what is looked up without parsing it.

    `body` is all that a decision follows from. `fleeting` changes often, and no decision follows from it alone: the
    progress that rank 0 reports, and the position in the queue. What the operator learns from reports is in other
    fields too, or is read when a run ends.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    body: bytes
    fleeting: bytes
    phase: str
    placed: bool
    """The job has a place, is about to take one, or is about to leave it."""
    fingerprint: str
    managed: tuple[str, str] | None
    """Kind and name of the object that the job starts and stops."""
    too_large: bool
    template_bytes: int

    @property
    def key(self) -> Key:
        """(namespace, name)."""
        return self.namespace, self.name

    @property
    def finished(self) -> bool:
        """The job has ended."""
        return self.phase in FINISHED

    def decides_as(self, other: "StoredJob | None") -> bool:
        """True if every decision on this job is the same as on the other."""
        if other is None or (self.too_large, self.template_bytes) != (other.too_large, other.template_bytes):
            return False
        return self.body == other.body

    def check_fleeting(self) -> None:
        """Raises ValueError if what is fleeting does not parse. That is a part of what `view` does, in less time."""
        try:
            _Fleeting.model_validate(msgspec.json.decode(self.fleeting), extra="ignore")
        except ValidationError as error:
            raise ValueError(f"status of TrainingJob {self.namespace}/{self.name}: {error}") from error

    def view(self) -> JobView:
        """The job, parsed. Raises ValueError if its status does not parse."""
        item: dict[str, Any] = msgspec.json.decode(self.body)
        fleeting: dict[str, Any] = msgspec.json.decode(self.fleeting)
        if "progress" in fleeting:
            item["status"]["progress"] = fleeting["progress"]
        if "position" in fleeting:
            item["status"]["queue"]["position"] = fleeting["position"]
        item["metadata"]["resourceVersion"] = self.resource_version
        return parse_job(item, too_large=self.too_large, template_bytes=self.template_bytes)


class UseBesideOthers(NamedTuple):
    """What a reference does on a GPU of one type that it shares: its model, the GPU memory that it takes in bytes, and
    the CPU and memory that it needs to be as fast as alone."""

    model: str
    gpu_memory_bytes: int
    needs: Amounts


@dataclass(frozen=True, slots=True)
class Reference:
    """A job beside which others of its namespace may be measured, as far as they read it before they choose one.

    `uses` are by GPU type: those on which a pair can be run. `needs` hold for this tolerance.
    """

    name: str
    uses: Mapping[str, UseBesideOthers]
    tolerance_percent: int
    stored: StoredJob

    def view(self) -> JobView:
        """The job, parsed: as a view, a reference takes up to 25 times its size as JSON."""
        return self.stored.view()


def store_job(item: Object) -> StoredJob:
    """A TrainingJob without the texts and estimates for people, and without what the API server notes on its writers.
    Of a template above the limit an outline is kept.

    Raises KeyError or TypeError if it is not an object of Kubernetes.
    """
    metadata = item["metadata"]
    spec, template_bytes = without_large_template(item.get("spec") or {})
    status, fleeting = _parted(without_what_is_for_people(item.get("status") or {}))
    kept = {key: metadata[key] for key in _METADATA if key in metadata}
    for field, keys in _MARKS.items():
        if marks := {key: value for key, value in (metadata.get(field) or {}).items() if key in keys}:
            kept[field] = marks
    managed = spec.get("managed")
    return StoredJob(
        namespace=intern(metadata["namespace"]),
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        body=msgspec.json.encode({"metadata": kept, "spec": spec, "status": status}),
        fleeting=msgspec.json.encode(fleeting) if fleeting else _NOTHING,
        phase=intern(_text(status.get("phase"))),
        placed=_text(_part(status, "allocation").get("state")) in _PLACED,
        fingerprint=_text(_part(status, "profile").get("fingerprint")),
        managed=(_text(managed.get("kind")), _text(managed.get("name"))) if isinstance(managed, Mapping) else None,
        too_large=is_too_large(item),
        template_bytes=template_bytes,
    )


_NOTHING: Final = b"{}"


class _Fleeting(ApiModel):
    progress: Progress | None = None
    position: Annotated[int, Field(ge=1)] = 1


def _parted(status: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decisions follow from, and what is fleeting."""
    fleeting = {}
    if "progress" in status:
        fleeting["progress"] = status.pop("progress")
    queue = status.get("queue")
    if isinstance(queue, Mapping) and "position" in queue:
        fleeting["position"] = queue["position"]
        status["queue"] = {key: value for key, value in queue.items() if key != "position"}
    return status, fleeting


def _part(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = status.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
