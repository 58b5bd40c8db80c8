"""The TrainingJobs that an array makes."""

from collections.abc import Mapping
from typing import Any

from synergy_api import names
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.pods.template import owner_reference
from synergy_operator.views.job import JobView, Member


def member_manifest(array: JobView, spec: TrainingJobSpec, index: int) -> Mapping[str, Any]:
    """The member with this index. All have the same template, and so one profile.

    What holds for the array as a whole is not theirs: what it waits for, and its time to live.
    """
    own = spec.model_copy(update={"array": None, "after": [], "ttl_seconds_after_finished": None})
    return {
        "metadata": {
            "name": names.member_name(array.name, index),
            "namespace": array.namespace,
            "labels": {names.LABEL_ARRAY: array.name, names.LABEL_ARRAY_INDEX: str(index)},
            "ownerReferences": [owner_reference(array)],
        },
        "spec": own.to_wire(),
    }


def following(spec: TrainingJobSpec) -> Mapping[str, Any]:
    """The fields of a spec in which members follow their array for as long as they are not finished."""
    return {
        "suspend": spec.suspend,
        "weight": spec.weight,
        "priorityClassName": spec.priority_class_name,
        "tenant": spec.tenant,
    }


def member_of(job: JobView) -> Member | None:
    """What its array reads of a job; None if no array has made it."""
    if job.index is None:
        return None
    return Member(
        name=job.name,
        uid=job.uid,
        array_uid=job.array_uid,
        index=job.index,
        phase=job.status.phase or "",
        start_time=job.status.start_time,
        deleting=job.deleting,
        follows=None if job.spec is None else following(job.spec),
    )
