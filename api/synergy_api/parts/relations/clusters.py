"""`spec.managedBy` and `status.cluster` of a TrainingJob: jobs of a hub cluster that run in worker clusters."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from synergy_api.base import ApiModel, Timestamp
from synergy_api.names import ANNOTATION_MAY_START, ANNOTATION_OFFER, LABEL_HUB, MANAGED_BY_OPERATOR

OFFERED: Final = "Offered"
"""The condition that says which worker cluster has the job, or why none has it."""
MANAGED_BY_RULES: Final[list[dict[str, Any]]] = [
    {
        "rule": "has(self.managedBy) == has(oldSelf.managedBy) && "
        "(!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",
        "message": "managedBy is fixed for the life of the job",
        "fieldPath": ".managedBy",
    },
    {
        "rule": f"!has(self.managedBy) || self.managedBy == '{MANAGED_BY_OPERATOR}' || "
        "!(has(self.array) || has(self.managed) || (has(self.after) && size(self.after) > 0))",
        "message": "a job that another controller manages has no array, after or managed: submit its jobs one by one",
        "fieldPath": ".managedBy",
    },
]

ManagedBy = Annotated[
    str | None,
    Field(
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        description="Which controller acts for the job: kube-synergy.dev/operator by default; with "
        "kube-synergy.dev/clusters the job runs in the worker cluster where it starts soonest. This cluster's operator "
        "and extender leave the job alone then, as with any other value.",
    ),
]


class ClusterOffer(ApiModel):
    """Which worker cluster has the job. Written by the controller of the worker clusters."""

    name: Annotated[str, Field(max_length=63, description="The worker cluster; empty while none has the job.")] = ""
    offer: Annotated[int, Field(ge=0, description="Grows by one with each worker cluster that the job is offered to.")]
    fixed: Annotated[
        bool, Field(description="The job may start there, and is never offered to another worker cluster.")
    ] = False
    since: Annotated[Timestamp, Field(description="Since when that worker cluster has it, or none.")]
    uid: Annotated[str, Field(max_length=64, description="The uid of the TrainingJob there, once it is fixed.")] = ""
    given_up: Annotated[
        int | None,
        Field(
            ge=0,
            description="Copies of offers up to this number are given up: their worker cluster was lost, as the "
            "annotation kube-synergy.dev/give-up said. They are deleted if it comes back.",
        ),
    ] = None


def managed_elsewhere(spec: Mapping[str, Any]) -> bool:
    """Whether operator and extender of this cluster leave the job alone, as `spec.managedBy` asks."""
    return (spec.get("managedBy") or MANAGED_BY_OPERATOR) != MANAGED_BY_OPERATOR


def waits_for_hub(metadata: Mapping[str, Any]) -> bool:
    """Whether the job is a hub's, and the hub has not fixed yet that it stays in this cluster: no run starts then.

    The label or the number of the offer makes it a hub's: without one of them the other still holds it.
    """
    annotations = metadata.get("annotations") or {}
    offer = annotations.get(ANNOTATION_OFFER)
    if LABEL_HUB not in (metadata.get("labels") or {}) and offer is None:
        return False
    return not offer or annotations.get(ANNOTATION_MAY_START) != offer
