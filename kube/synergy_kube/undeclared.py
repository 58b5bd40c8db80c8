"""Fields that a component writes and a served schema does not declare. Pure."""

from collections.abc import Mapping
from typing import Any, Final

Paths = frozenset[tuple[str, ...]]
"""Fields of an object, from its top."""
Schema = Mapping[str, Any]
ITEMS: Final = "[]"
"""In a path: each item of a list."""
VALUES: Final = "*"
"""In a path: each value of a map."""
_KEEPS: Final = "x-kubernetes-preserve-unknown-fields"


def undeclared(own: Schema, served: Schema) -> Paths:
    """The paths that `own` declares and `served` does not; the highest of each branch only."""
    return frozenset(_missing(own, served, ()))


def _missing(own: Schema, served: Schema, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if served.get(_KEEPS):
        return []
    found: list[tuple[str, ...]] = []
    declared = served.get("properties") or {}
    for name, field in (own.get("properties") or {}).items():
        if name in declared:
            found += _missing(field, declared[name], (*path, name))
        elif not isinstance(served.get("additionalProperties"), Mapping):
            found.append((*path, name))
    for key, mark in (("items", ITEMS), ("additionalProperties", VALUES)):
        inner, other = own.get(key), served.get(key)
        if isinstance(inner, Mapping) and isinstance(other, Mapping):
            found += _missing(inner, other, (*path, mark))
    return found


def prune(body: Mapping[str, Any], paths: Paths) -> dict[str, Any]:
    """A copy of `body` without the fields at `paths`. What is not on the way to one of them is shared, not copied."""
    pruned: Any = body
    for path in paths:
        pruned = _without(pruned, path)
    return dict(pruned)


def _without(value: Any, path: tuple[str, ...]) -> Any:
    head, rest = path[0], path[1:]
    if head == ITEMS:
        return [_without(item, rest) for item in value] if isinstance(value, list) else value
    if not isinstance(value, Mapping):
        return value
    if head == VALUES:
        return {key: _without(inner, rest) for key, inner in value.items()}
    if head not in value:
        return value
    if not rest:
        return {key: inner for key, inner in value.items() if key != head}
    return {**value, head: _without(value[head], rest)}
