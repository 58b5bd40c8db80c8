"""The batch/v1 Jobs of profile runs, as the operator reads them."""

from dataclasses import dataclass
from typing import Final

from synergy_api import names
from synergy_api.timestamps import parse_time
from synergy_operator.views.annotations import (
    ANNOTATION_FINGERPRINT,
    ANNOTATION_HIT_RATE,
    ANNOTATION_POINT,
    ANNOTATION_REFERENCE,
    ANNOTATION_REFERENCE_MODEL,
    ANNOTATION_REPEAT,
    ANNOTATION_STORAGE,
)
from synergy_operator.views.metadata import Object, controller_uid, number_of

STORAGE_VARIABLE: Final = "SYNERGY_STORAGE_BYTES_PER_S"
"""In a profile pod: the limit on reads from storage in bytes per second."""
_LONGEST_REFERENCE: Final = 253
_LONGEST_MODEL: Final = 128


@dataclass(frozen=True, slots=True)
class Target:
    """One run of a profile point.

    All data is in memory unless `hit_rate` is set. With `hit_rate`, that fraction counts as cached and the rest is read
    from storage, at `storage_bytes_per_s` at most. `repeat` is the number of earlier runs of the same point.
    """

    cpu_millis: int
    hit_rate: float | None = None
    storage_bytes_per_s: int | None = None
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class PairSide:
    """One of the two Jobs that run a job beside a reference job, on one shared GPU."""

    reference: str
    model: str
    is_reference: bool


@dataclass(frozen=True, slots=True)
class BatchJobView:
    """A batch/v1 Job that measures one point."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    owner: str
    job: str
    run: int
    target: Target
    fingerprint: str
    created_at: float
    deleting: bool
    failed_reason: str
    failed_message: str
    complete: bool
    pair: PairSide | None = None
    storage_limit: int | None = None
    """The limit on reads from storage in its pod template, which the API server lets no one change; None if it has
    none."""

    @property
    def point(self) -> int:
        """CPU of the point in milli-CPU; -1 if the Job does not name it."""
        return self.target.cpu_millis

    @property
    def finished(self) -> bool:
        """The Job starts no more pods."""
        return self.complete or bool(self.failed_reason)


def read_batch_job(item: Object) -> BatchJobView:
    """The view of a batch/v1 Job that has the operator's label."""
    metadata, status = item["metadata"], item.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    true = {c["type"]: c for c in status.get("conditions") or [] if c.get("status") == "True"}
    failed = true.get("Failed", {})
    return BatchJobView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        owner=controller_uid(metadata),
        job=labels.get(names.LABEL_JOB, ""),
        run=number_of(labels.get(names.LABEL_RUN)),
        target=_target(annotations),
        fingerprint=annotations.get(ANNOTATION_FINGERPRINT, ""),
        created_at=parse_time(metadata["creationTimestamp"]),
        deleting="deletionTimestamp" in metadata,
        failed_reason=(failed.get("reason") or "Failed") if failed else "",
        failed_message=failed.get("message") or "",
        complete="Complete" in true,
        pair=_pair(labels, annotations),
        storage_limit=_storage_limit(item),
    )


def _storage_limit(item: Object) -> int | None:
    """In bytes per second. A sidecar that a webhook adds may stand before the container that trains."""
    containers = (((item.get("spec") or {}).get("template") or {}).get("spec") or {}).get("containers") or ()
    variables = (variable for container in containers for variable in container.get("env") or ())
    values = (number_of(one.get("value")) for one in variables if one["name"] == STORAGE_VARIABLE)
    return next((value for value in values if value > 0), None)


def _pair(labels: Object, annotations: Object) -> PairSide | None:
    reference, model = annotations.get(ANNOTATION_REFERENCE), annotations.get(ANNOTATION_REFERENCE_MODEL, "")
    if not reference or len(reference) > _LONGEST_REFERENCE or len(model) > _LONGEST_MODEL:
        return None
    return PairSide(reference, model, labels.get(names.LABEL_RANK) == "1")


def _target(annotations: Object) -> Target:
    """What the annotations say. A value that no target has counts as missing: users with the right to edit Jobs can
    write any."""
    hit_rate, storage = _hit_rate(annotations.get(ANNOTATION_HIT_RATE)), number_of(annotations.get(ANNOTATION_STORAGE))
    return Target(
        number_of(annotations.get(ANNOTATION_POINT)),
        hit_rate,
        storage if hit_rate is not None and storage > 0 else None,
        max(0, number_of(annotations.get(ANNOTATION_REPEAT))),
    )


def _hit_rate(text: str | None) -> float | None:
    """The fraction with four decimals, as in the name of the Job."""
    try:
        rate = round(float(text or "nan"), 4)
    except ValueError:
        return None
    return rate if 0.0 <= rate <= 1.0 else None
