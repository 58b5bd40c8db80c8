"""Functions as a user's module has them, for tests of what is captured of them."""

import functools
import importlib.metadata
import math
import os.path as paths
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Optional

RATE = 0.5
TABLE = {"a": (1, 2.5, None), "b": [b"x", {3}]}
LOCK = threading.Lock()


def doubled(value: float) -> float:
    return value * RATE * 4


def counted(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args), 1

    return inner


@dataclass
class Model:
    weights: list[float]
    name: Optional[str] = None  # noqa: UP045 - a name that only an annotation uses

    def size(self) -> int:
        return len(self.weights)


def train(first: float, *, more: "int | None" = None) -> dict[str, Any]:
    """Uses a bit of everything."""
    model = Model([doubled(first), math.pi])
    return {
        "size": model.size(),
        "value": doubled(first),
        "table": sorted(TABLE),
        "kind": OrderedDict.__name__,
        "path": paths.basename("a/b"),
        "version": bool(importlib.metadata.version("numpy")),
        "more": more,
    }


@counted
def decorated(value: int) -> int:
    return value + 1


def even(number: int) -> bool:
    return number == 0 or odd(number - 1)


def odd(number: int) -> bool:
    return number != 0 and even(number - 1)


def locks() -> None:
    with LOCK:
        pass


def misspelt() -> None:
    undefined_name()  # type: ignore[name-defined]  # noqa: F821


def generates() -> Any:
    yield 1


async def waits() -> None:
    pass


def outer() -> Any:
    local = 3

    def inner() -> int:
        return local

    return inner


def other_name() -> Any:
    return renamed(1)


renamed = doubled


class Holder:
    def method(self) -> None:
        pass
