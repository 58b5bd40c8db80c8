"""Keys and metadata that several views share."""

from collections.abc import Mapping
from typing import Any

from synergy_api.timestamps import parse_time

Object = Mapping[str, Any]
Key = tuple[str, str]
"""(namespace, name)."""


def controller_uid(metadata: Object) -> str:
    """The uid of the controlling owner, or an empty string."""
    owners = metadata.get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def number_of(text: str | None) -> int:
    """A label's value as a number; -1 if it is none."""
    return int(text) if text is not None and text.isdecimal() else -1


def time_of(text: str | None) -> float | None:
    """An RFC 3339 time as Unix seconds; None if it is missing or empty."""
    return parse_time(text) if text else None
