"""Fields that views of several kinds have in common."""

from collections.abc import Mapping
from typing import Any

from synergy_api.timestamps import parse_time

Object = Mapping[str, Any]


def controller_uid(metadata: Object) -> str:
    owners = metadata.get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def number_of(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else -1


def time_of(text: str | None) -> float | None:
    return parse_time(text) if text else None


Key = tuple[str, str]
"""(namespace, name)."""
