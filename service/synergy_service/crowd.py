"""How many connections one address may have. A flood displaces itself, not the workers of others."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Connection = TypeVar("Connection")

MOST_CONNECTIONS: Final = 8192
"""At one port. Each worker keeps one, which takes some 54 KB."""
PER_ADDRESS: Final = 512
"""A pod has one for each of its processes at most. A node's address may stand for all pods of the node's network."""


class Crowd(Generic[Connection]):
    """The open connections of a port by address, oldest first. `close` is called with those that must go."""

    def __init__(
        self, close: Callable[[Connection], None], *, most: int = MOST_CONNECTIONS, per_address: int = PER_ADDRESS
    ) -> None:
        self._close = close
        self._most, self._per_address = most, per_address
        self._of: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def come(self, address: str, connection: Connection) -> None:
        """A new connection. The oldest of its address goes where that has too many. Where there are too many in all,
        the oldest of the address goes that has the most."""
        self._of.setdefault(address, {})[connection] = None
        self._count += 1
        crowded = address
        if len(self._of[address]) <= self._per_address:
            if self._count <= self._most:
                return
            crowded = max(self._of, key=lambda one: len(self._of[one]))
        oldest = next(iter(self._of[crowded]))
        self.leave(crowded, oldest)
        self._close(oldest)

    def leave(self, address: str, connection: Connection) -> None:
        """The connection is closed."""
        there = self._of.get(address)
        if there is None or connection not in there:
            return
        del there[connection]
        self._count -= 1
        if not there:
            del self._of[address]
