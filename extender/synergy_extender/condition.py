"""Conditions in an object's status, beside what was written of them before. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from synergy_api.base import Condition
from synergy_api.cluster.nodes import Object
from synergy_api.reasons import Finding
from synergy_api.timestamps import format_time

VALID: Final = "Valid"


def condition(item: Object, finding: Finding, *, holds: bool, now: float, kind: str = VALID) -> Condition:
    """A condition; its transition time moves only when its status flips."""
    earlier = before(item, kind)
    status = "True" if holds else "False"
    since = earlier.last_transition_time if earlier is not None and earlier.status == status else format_time(now)
    return Condition(
        type=kind,
        status="True" if holds else "False",
        reason=finding.reason.value,
        message=finding.message,
        last_transition_time=since,
        observed_generation=item["metadata"].get("generation"),
    )


def before(item: Object, kind: str) -> Condition | None:
    """The condition of this type as it stands in the object; None where there is none that parses."""
    written: list[Mapping[str, Any]] = (item.get("status") or {}).get("conditions") or []
    for one in written:
        if one.get("type") == kind:
            try:
                return Condition.model_validate(one)
            except ValidationError:
                return None
    return None
