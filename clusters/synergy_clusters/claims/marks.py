"""Marks of a hub in its own cluster and in worker clusters. Pure.

The hub's mark is raised in its own cluster first, then in every worker cluster that answers: once after an offer is
fixed and before its copy may start. So data of the hub from before that moment has a lower mark than these clusters
have. They tell a hub that was restored from a backup, and a second hub with a copy of the data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from synergy_api.names import GROUP

HUB_LEASE: Final = "kube-synergy-clusters"
"""In the hub's own cluster."""
ANNOTATION_TAKE_OVER: Final = f"{GROUP}/take-over"
"""On that Lease: the highest mark of another controller, which an administrator knows to have ended."""


@dataclass(frozen=True, slots=True)
class Mark:
    """`number` grows with each raise; `holder` is the process that raised it."""

    number: int
    holder: str


NO_MARK: Final = Mark(0, "")


def worker_lease(hub: str) -> str:
    """Name of the Lease in a worker cluster."""
    return f"kube-synergy-hub-{hub}"


def mark_of(lease: Mapping[str, Any] | None) -> Mark:
    """The mark of a Lease; `NO_MARK` if there is none."""
    spec = (lease or {}).get("spec") or {}
    return Mark(spec.get("leaseTransitions") or 0, spec.get("holderIdentity") or "")


def spec_of(mark: Mark) -> dict[str, Any]:
    """The part of a Lease that says it."""
    return {"spec": {"leaseTransitions": mark.number, "holderIdentity": mark.holder}}


def is_foreign(found: Mark, own: Mark) -> bool:
    """Whether a worker cluster's mark cannot come from the hub data that has `own`, which was read after it."""
    return found.number > own.number or (found.number == own.number and found != own)


def refusal(foreign: Mapping[str, Mark], own: Mark, namespace: str) -> str:
    """What to do about marks that are foreign, by cluster."""
    cluster, found = max(foreign.items(), key=lambda item: (item[1].number, item[0]))
    return (
        f"cluster {cluster} knows mark {found.number} of this hub, whose own is {own.number}: the hub was restored "
        "from a backup, or a second controller has a copy of its data. Stop any other controller, and when all worker "
        f"clusters answer, run: kubectl annotate lease {HUB_LEASE} --namespace {namespace} --overwrite "
        f"{ANNOTATION_TAKE_OVER}={found.number}"
    )
