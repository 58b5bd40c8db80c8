"""Keys and metadata that several views share."""

from collections.abc import Mapping
from typing import Any, Final

from synergy_api.quantity import LARGEST
from synergy_api.timestamps import parse_time

Object = Mapping[str, Any]
Key = tuple[str, str]
"""(namespace, name)."""
_MOST_DIGITS: Final = len(str(LARGEST))


def controller_uid(metadata: Object) -> str:
    """The uid of the controlling owner, or an empty string."""
    owners = metadata.get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def number_of(text: str | None) -> int:
    """The value of a label or an annotation as a number of 64 bits; -1 if it is none."""
    if text is None or not text.isdecimal() or len(text) > _MOST_DIGITS:
        return -1
    number = int(text)
    return number if number <= LARGEST else -1


def time_of(text: str | None) -> float | None:
    """An RFC 3339 time as Unix seconds; None if it is missing or empty."""
    return parse_time(text) if text else None
