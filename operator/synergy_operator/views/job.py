"""TrainingJobs as the operator reads them."""

from dataclasses import dataclass, replace
from typing import Final

import msgspec
from pydantic import ValidationError

from synergy_api.timestamps import parse_time
from synergy_api.training_job import TrainingJobSpec, TrainingJobStatus
from synergy_operator.views.metadata import Object

MOST_OBJECT_BYTES: Final = 1 << 20
"""Of a TrainingJob as JSON. The API server keeps about 1.5 MB, in which the status has to grow."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A TrainingJob. `spec` is None when it does not parse; `spec_error` then names the field."""

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
    """The whole object leaves hardly any room for its status."""

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return self.namespace, self.name


def only_progress(before: JobView | None, after: JobView) -> bool:
    """Whether all that has changed is what rank 0 reports while it trains: nothing follows from that by itself. What is
    learned from reports stands in other fields too, or is read when a run ends."""
    if before is None or before.uid != after.uid:
        return False
    status = before.status.model_copy(update={"progress": after.status.progress})
    return replace(before, resource_version=after.resource_version, status=status) == after


def read_job(item: Object) -> JobView:
    """A TrainingJob from its JSON.

    Raises ValueError if the status does not parse: only the operator and the extender write it.
    """
    metadata = item["metadata"]
    spec, problem = _read_spec(item.get("spec") or {})
    try:
        status = TrainingJobStatus.model_validate(item.get("status") or {})
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
        too_large=len(msgspec.json.encode(item)) > MOST_OBJECT_BYTES,
    )


def _read_spec(spec: Object) -> tuple[TrainingJobSpec | None, str]:
    try:
        return TrainingJobSpec.model_validate(spec), ""
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("spec", *first["loc"]))
        return None, f"{field}: {first['msg']}"
