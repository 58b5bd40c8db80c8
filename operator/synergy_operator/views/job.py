"""TrainingJobs, as the operator reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from synergy_api.names import API_VERSION, LABEL_ARRAY_INDEX
from synergy_api.parts.relations.clusters import waits_for_hub
from synergy_api.resources.training_job import TrainingJobSpec, TrainingJobStatus
from synergy_api.timestamps import parse_time
from synergy_operator.views.metadata import Object, controller_uid

MOST_OBJECT_BYTES: Final = 1 << 20
"""Limit for a TrainingJob as JSON. The API server stores about 1.5 MB, and the status needs room to grow."""
_MOST_DIGITS: Final = 3
_FOR_PEOPLE: Final = "summary"
"""Texts of the extender about its own fields. They change with the progress, and no decision follows from them."""
_ESTIMATES: Final = ("estimatedStart", "estimatedStartBy")
"""Of the queue. They change with each forecast, and no decision follows from them either."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A TrainingJob. If the spec does not parse, `spec` is None and `spec_error` names the field."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    created_at: float
    deleting: bool
    spec: TrainingJobSpec | None
    spec_error: str
    status: TrainingJobStatus
    too_large: bool = False
    """The object is so large that its status may no longer fit."""
    controller: str = ""
    """The uid of the object that it belongs to; empty if it has none."""
    array: str = ""
    """Name of the array that made it."""
    array_uid: str = ""
    index: int | None = None
    """Its index there."""
    waits_for_hub: bool = False
    """A hub cluster has offered it here, and has not fixed yet that it stays: no run may start."""

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return self.namespace, self.name


def without_what_is_for_people(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status without the fields from which no decision follows."""
    kept = {key: status[key] for key in status if key != _FOR_PEOPLE}
    if isinstance(queue := kept.get("queue"), Mapping):
        kept["queue"] = {key: queue[key] for key in queue if key not in _ESTIMATES}
    return kept


def read_job(item: Object) -> JobView:
    """The view of a TrainingJob, without the texts and estimates for people.

    Raises ValueError if the status does not parse. Only the operator and the extender write it.
    """
    return parse_job(item, too_large=is_too_large(item))


def is_too_large(item: Object) -> bool:
    """Whether the whole object is so large that its status may no longer fit."""
    return len(msgspec.json.encode(item)) > MOST_OBJECT_BYTES


def parse_job(item: Object, *, too_large: bool) -> JobView:
    """As `read_job`, for an object of which parts may be left out (`without_what_is_for_people`)."""
    metadata = item["metadata"]
    spec, problem = _read_spec(item.get("spec") or {})
    written = item.get("status") or {}
    try:
        # what a newer version has written stays unread: after a rollback, jobs must go on
        status = TrainingJobStatus.model_validate(without_what_is_for_people(written), extra="ignore")
    except ValidationError as error:
        raise ValueError(f"status of TrainingJob {metadata['namespace']}/{metadata['name']}: {error}") from error
    return JobView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata.get("generation", 0),
        created_at=parse_time(metadata["creationTimestamp"]),
        deleting="deletionTimestamp" in metadata,
        spec=spec,
        spec_error=problem,
        status=status,
        controller=controller_uid(metadata),
        waits_for_hub=waits_for_hub(metadata),
        too_large=too_large,
        **_membership(metadata),
    )


def _membership(metadata: Object) -> dict[str, Any]:
    """The array that controls the job, and its index; nothing for other jobs, whatever their labels say."""
    index = (metadata.get("labels") or {}).get(LABEL_ARRAY_INDEX, "")
    for owner in metadata.get("ownerReferences") or ():
        ours = owner.get("kind") == "TrainingJob" and owner.get("apiVersion") == API_VERSION
        if ours and owner.get("controller") and index.isdecimal() and len(index) <= _MOST_DIGITS:
            return {"array": owner["name"], "array_uid": owner["uid"], "index": int(index)}
    return {}


def _read_spec(spec: Object) -> tuple[TrainingJobSpec | None, str]:
    try:
        return TrainingJobSpec.model_validate(spec), ""
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("spec", *first["loc"]))
        return None, f"{field}: {first['msg']}"
