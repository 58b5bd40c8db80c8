"""Why the extender revokes a run."""

from enum import StrEnum

from synergy_api.reasons import Reason


class Revocation(StrEnum):
    """The texts of `status.allocation.reason`. A longer text may end with one of these, after its cause."""

    SUSPENDED = "spec.suspend is true"
    DELETED = "the TrainingJob is deleted, and a finalizer keeps it"
    NODE_UNUSABLE = "a planned node takes no new pods any more; the job is planned anew"
    PARTNERS_GONE = "the jobs planned for its GPU do not come; the job is planned anew"
    ROOM_NOT_FREED = "the room on a planned node did not come free in time; the job is planned anew"
    MOVES = "the plan has another place for the job; it starts there as soon as it has left"
    YIELDS = "the plan gives its GPUs to other jobs"


PODS_NOT_STARTED = f"{Reason.PODS_NOT_STARTED.value}: "
"""How the text begins after which the operator waits before the next try."""
SHARING_WAS_SLOW = "sharing_was_slow"

RULES = (*(one.name.lower() for one in Revocation), "pods_not_started", SHARING_WAS_SLOW)
"""All rules by which runs are revoked, as metrics name them."""


def rule_of(text: str) -> str:
    """The rule behind the reason of a revoked run; empty for a text of another version."""
    if text.startswith(PODS_NOT_STARTED):
        return "pods_not_started"
    rule = next((one for one in Revocation if text.endswith(one)), None)
    if rule is None:
        return ""
    return rule.name.lower() if text == rule else SHARING_WAS_SLOW
