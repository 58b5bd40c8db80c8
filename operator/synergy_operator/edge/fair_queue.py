"""Keys that wait for a worker. Groups of keys take turns: many keys of one group do not delay those of another."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key")


class FairQueue(Generic[Key]):
    """A queue of keys: first in, first out within a group, one key of each group in turn."""

    def __init__(self, group: Callable[[Key], Hashable]) -> None:
        self._group = group
        self._waiting: OrderedDict[Hashable, deque[Key]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, key: Key) -> None:
        """Add a key."""
        self._waiting.setdefault(self._group(key), deque()).append(key)
        self._length += 1

    def popleft(self) -> Key:
        """Remove and return the next key. Raises KeyError if there is none."""
        group, keys = self._waiting.popitem(last=False)
        key = keys.popleft()
        if keys:
            self._waiting[group] = keys
        self._length -= 1
        return key
