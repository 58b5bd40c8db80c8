"""TrainingJobs of the hub and their copies in worker clusters, reduced to what decisions need."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from synergy_api.names import (
    ANNOTATION_GIVE_UP,
    ANNOTATION_HUB_GENERATION,
    ANNOTATION_HUB_JOB_UID,
    ANNOTATION_MAY_START,
    ANNOTATION_OFFER,
    FINALIZER_CLUSTERS,
    MANAGED_BY_CLUSTERS,
)
from synergy_api.parts.relations.clusters import ClusterOffer
from synergy_api.resources.training_job import FINISHED

Object = Mapping[str, Any]
Key = tuple[str, str]
"""(namespace, name)."""
NEVER: Final = ClusterOffer(offer=0, since="1970-01-01T00:00:00Z")
"""Of a job whose status names no offer."""


@dataclass(frozen=True, slots=True)
class HubJob:
    """A TrainingJob of the hub. `offer` is what its status says; `item` is the whole object. `gives_up`: its annotation
    says that the copy of this offer never runs again."""

    uid: str
    version: str
    generation: int
    deleting: bool
    suspended: bool
    finished: bool
    finalizer: bool
    offer: ClusterOffer
    item: Object
    gives_up: int = 0

    @property
    def given_up(self) -> bool:
        """Whether the annotation is about the present offer, and this one is fixed."""
        return self.offer.fixed and self.gives_up == self.offer.offer


@dataclass(frozen=True, slots=True)
class Copy:
    """A TrainingJob in a worker cluster that this hub created. `asks` is true if it has a place and no run may start
    before the hub has fixed it."""

    uid: str
    hub_job_uid: str
    offer: int
    generation: str
    may_start: bool
    deleting: bool
    asks: bool
    status: Object

    def is_of(self, job: HubJob, offer: ClusterOffer) -> bool:
        """Whether it is the copy that this offer made, the very one that was fixed."""
        return self.hub_job_uid == job.uid and self.offer == offer.offer and offer.uid in ("", self.uid)


def ours(item: Object) -> bool:
    """Whether the job runs in a worker cluster."""
    return bool((item.get("spec") or {}).get("managedBy") == MANAGED_BY_CLUSTERS)


def read_hub_job(item: Object) -> HubJob:
    """The view of a TrainingJob of the hub. Raises ValueError where its status.cluster does not parse."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    written = status.get("cluster")
    return HubJob(
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        generation=metadata.get("generation", 0),
        deleting="deletionTimestamp" in metadata,
        suspended=bool(spec.get("suspend")),
        finished=status.get("phase") in FINISHED,
        finalizer=FINALIZER_CLUSTERS in (metadata.get("finalizers") or ()),
        offer=NEVER if written is None else ClusterOffer.model_validate(written),
        item=item,
        gives_up=_number((metadata.get("annotations") or {}).get(ANNOTATION_GIVE_UP, "")),
    )


def read_copy(item: Object) -> Copy:
    """The view of a TrainingJob of a worker cluster that has the hub's label. Annotations that somebody has changed
    make it a copy of no job."""
    metadata, status = item["metadata"], item.get("status") or {}
    annotations = metadata.get("annotations") or {}
    number, allocation = annotations.get(ANNOTATION_OFFER, ""), status.get("allocation") or {}
    ended = (status.get("service") or {}).get("endedRun", 0)
    return Copy(
        uid=metadata["uid"],
        hub_job_uid=annotations.get(ANNOTATION_HUB_JOB_UID, ""),
        offer=_number(number),
        generation=annotations.get(ANNOTATION_HUB_GENERATION, ""),
        may_start=bool(number) and annotations.get(ANNOTATION_MAY_START) == number,
        deleting="deletionTimestamp" in metadata,
        asks=allocation.get("state") == "Granted"
        and allocation.get("purpose", "Train") == "Train"
        and allocation.get("run", 0) > ended,
        status=status,
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
