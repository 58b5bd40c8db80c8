"""What is worked out from something that often stays the same from plan to plan."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Derived:
    """The last of each kind, with what it was worked out from."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Any, Any, object]] = {}

    def of(self, kind: str, key: object, make: Callable[[], T], held: object = None) -> T:
        """What `make` gives; not made anew where the last of this kind has an equal key.

        Objects whose ids are in the key are `held`, so that no other comes to have one.
        """
        last = self._last.get(kind)
        if last is None or last[0] != key:
            last = self._last[kind] = (key, make(), held)
        found: T = last[1]
        return found
