"""The cluster read once, with the rights of any user."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from synergy_kube import ApiError, Reflector

_REFUSED: Final = (401, 403, 404)
"""Answers to a user who may not read a collection, or whose cluster does not know it."""
_OF_NO_NAMESPACE: Final = frozenset(
    {"nodes", "gpupools", "schedulingpolicies", "tenants", "namespaces", "priorityclasses", "resourceslices"}
)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Collections, by their plural, that a user may list in one namespace only, or not at all."""

    elsewhere: frozenset[str] = frozenset()
    at_all: frozenset[str] = frozenset()


async def read_each(reflectors: Mapping[str, Reflector], namespace: str) -> Hidden:
    """Read each collection once: in all namespaces, or where that is not allowed in this one."""
    elsewhere, at_all = set[str](), set[str]()
    for name, reflector in reflectors.items():
        if await _may_read(reflector, None):
            continue
        narrower = name not in _OF_NO_NAMESPACE and await _may_read(reflector, namespace)
        (elsewhere if narrower else at_all).add(name)
    return Hidden(frozenset(elsewhere), frozenset(at_all))


async def _may_read(reflector: Reflector, namespace: str | None) -> bool:
    try:
        await reflector.read_once(namespace)
    except ApiError as error:
        if error.code not in _REFUSED:
            raise
        return False
    return True
