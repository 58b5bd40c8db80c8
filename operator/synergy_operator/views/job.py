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
MOST_TEMPLATE_BYTES: Final = 256 << 10
"""Limit of the template as JSON.

Each pod repeats the template, `kubectl apply` keeps a second copy in an annotation, and the API server's limit for a
whole object is about 1.5 MB.
"""
_MOST_OUTLINE_BYTES: Final = 16 << 10
_OUTLINE_OF_POD: Final = ("terminationGracePeriodSeconds", "affinity")
_OUTLINE_OF_CONTAINER: Final = ("name", "image", "restartPolicy", "resources")
"""What the operator reads of a template while a run of it goes on."""
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
    template_bytes: int = 0
    """Size of the template as JSON. Of one above the limit, `spec` has only an outline."""
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

    @property
    def template_too_large(self) -> bool:
        """The template is above the limit: no run starts with it."""
        return self.template_bytes > MOST_TEMPLATE_BYTES


@dataclass(frozen=True, slots=True)
class Member:
    """A TrainingJob that an array made, as far as the array reads it."""

    name: str
    uid: str
    array_uid: str
    index: int
    phase: str
    start_time: str | None
    deleting: bool
    follows: Mapping[str, Any] | None
    """The fields in which it follows its array (`following`); None if its spec does not parse."""


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
    spec, template_bytes = without_large_template(item.get("spec") or {})
    return parse_job({**item, "spec": spec}, too_large=is_too_large(item), template_bytes=template_bytes)


def is_too_large(item: Object) -> bool:
    """Whether the whole object is so large that its status may no longer fit."""
    return len(msgspec.json.encode(item)) > MOST_OBJECT_BYTES


def without_large_template(spec: Object) -> tuple[Object, int]:
    """A spec, and the size of its template as JSON. Of a template above the limit only an outline is left.

    As Python's objects, a template takes up to 25 times its size as JSON.
    """
    template = spec.get("template")
    size = len(msgspec.json.encode(template))
    return ({**spec, "template": _outline(template)} if size > MOST_TEMPLATE_BYTES else spec), size


def parse_job(item: Object, *, too_large: bool, template_bytes: int) -> JobView:
    """As `read_job`, for an object of which parts may be left out (`without_what_is_for_people`,
    `without_large_template`)."""
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
        template_bytes=template_bytes,
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


def _outline(template: Any) -> dict[str, Any]:
    """What a run that goes on needs of its template. Of one that has too much of that too, or no containers, a
    container without fields."""
    pod = _fields(_fields(template).get("spec"))
    found = {key: pod[key] for key in _OUTLINE_OF_POD if key in pod}
    for kind in ("containers", "initContainers"):
        containers = pod[kind] if isinstance(pod.get(kind), list) else []
        found[kind] = [
            {key: one[key] for key in _OUTLINE_OF_CONTAINER if key in one} for one in map(_fields, containers)
        ]
    usable = found["containers"] and len(msgspec.json.encode(found)) <= _MOST_OUTLINE_BYTES
    return {"spec": found if usable else {"containers": [{}]}}


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _read_spec(spec: Object) -> tuple[TrainingJobSpec | None, str]:
    try:
        return TrainingJobSpec.model_validate(spec), ""
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("spec", *first["loc"]))
        return None, f"{field}: {first['msg']}"
