"""The check that an upgrade does not downgrade an existing definition. Pure."""

from collections.abc import Mapping
from typing import Any

from synergy_api.names import ANNOTATION_VERSION

Object = Mapping[str, Any]


class DowngradeError(Exception):
    """The cluster's definition is newer than the one to apply."""


def check_upgrade(there: Object | None, wanted: Object) -> None:
    """Raise DowngradeError if `there`, the definition in the cluster, is newer than `wanted`.

    A definition without a version is older than all others.
    """
    found, offered = version_of(there or {}), version_of(wanted)
    if _parsed(found) > _parsed(offered):
        name = wanted["metadata"]["name"]
        raise DowngradeError(
            f"CustomResourceDefinition {name} is of version {found}, newer than {offered} of this image: going back "
            "could drop fields of objects that are stored. Install a chart of at least that version, keep the newer "
            "definitions with crds.upgrade=false, or force the older ones with crds.allowDowngrade=true"
        )


def version_of(definition: Object) -> str:
    """The version that a definition states; empty if it states none."""
    return str(((definition.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION_VERSION) or "")


def _parsed(version: str) -> tuple[int, ...]:
    """The numbers of a version, up to the first part that is no number. A pre-release therefore counts as its
    release."""
    numbers: list[int] = []
    for part in version.removeprefix("v").split("-")[0].split("+")[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
