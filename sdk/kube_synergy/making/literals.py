"""Plain values as Python source."""

import math
from collections.abc import Iterable
from typing import Any

_DEEPEST = 50


def literal(value: Any, depth: int = 0) -> str:
    """Source that makes the value. Raises ValueError for anything but None, bool, numbers, str, bytes, and lists,
    tuples, sets and dicts of these; subclasses count as something else."""
    if depth > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} times")
    kind = type(value)
    if kind is float and not math.isfinite(value):
        return f"float({str(value)!r})"
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return repr(value)
    if kind is list:
        return f"[{_all(value, depth)}]"
    if kind is tuple:
        return f"({_all(value, depth)},)" if value else "()"
    if kind in (set, frozenset):
        return f"{kind.__name__}([{_all(sorted(value, key=repr), depth)}])"
    if kind is dict:
        pairs = (f"{literal(key, depth + 1)}: {literal(one, depth + 1)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    raise ValueError(f"it is a {kind.__module__}.{kind.__qualname__}, no plain value")


def _all(values: Iterable[Any], depth: int) -> str:
    return ", ".join(literal(value, depth + 1) for value in values)
