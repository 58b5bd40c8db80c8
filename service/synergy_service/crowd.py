"""Limits of the number of connections, in total and for each address. Too many connections from one address displace
each other, not the connections of other addresses."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Connection = TypeVar("Connection")

MOST_CONNECTIONS: Final = 8192
"""Connections at one port. Each worker keeps one, which takes about 54 KB."""
PER_ADDRESS: Final = 512
"""A pod has at most one for each of its processes. A node's address may represent all pods of the node's network."""


class Crowd(Generic[Connection]):
    """The open connections of a port by address, oldest first. `close` is called with each connection to close."""

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
        """Add a new connection. If its address has too many, the oldest one of that address is closed. If the port has
        too many, the oldest one of the address with the most connections is closed."""
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
