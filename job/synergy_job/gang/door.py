"""Who knocks at rank 0's port: connections that have not proved yet that they belong to the gang.

Anybody who can reach the port may connect. A stranger is a connection that has not proved to know the key. It gets a
few seconds and a few kilobytes, an address gets a few connections, and their total is bounded. They cost the gang only
a little of one thread's time. The port closes when the gang is complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synergy_job.wire import Connection

HANDSHAKE_S = 5.0
"""From the connection to the last word of the handshake."""
STRANGER_BYTES = 16384
PER_ADDRESS = 32
"""More ranks than this never come from one machine at the same moment."""
MOST_STRANGERS = 256


@dataclass
class Stranger:
    """A connection that is not known to belong to the gang."""

    connection: Connection
    address: str
    until: float
    hello: dict[str, Any] | None = None
    challenge: str = ""


class Door:
    """The strangers, oldest first. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._strangers: dict[Connection, Stranger] = {}

    def __len__(self) -> int:
        return len(self._strangers)

    def get(self, connection: Connection) -> Stranger | None:
        """The stranger behind a connection; None where it is none, or none any more."""
        return self._strangers.get(connection)

    def come(self, connection: Connection, address: str) -> list[Connection]:
        """A new stranger. Returns the connections that must go for it: the oldest of an address that has too many, else
        where there are too many the oldest of the address that has the most. So a flood displaces itself."""
        same = [known for known in self._strangers.values() if known.address == address]
        gone: list[Connection] = []
        if len(same) >= PER_ADDRESS:
            gone = [same[0].connection]
        elif len(self._strangers) >= MOST_STRANGERS:
            gone = [self._most_crowded()]
        for one in gone:
            self.leave(one)
        connection.most_bytes = STRANGER_BYTES
        self._strangers[connection] = Stranger(connection, address, self._clock() + HANDSHAKE_S)
        return gone

    def leave(self, connection: Connection) -> None:
        """The connection is a stranger's no more."""
        if self._strangers.pop(connection, None) is not None:
            connection.most_bytes = None

    def late(self) -> list[Connection]:
        """The connections whose time is over."""
        now = self._clock()
        return [stranger.connection for stranger in self._strangers.values() if stranger.until < now]

    def all(self) -> list[Connection]:
        """Every stranger's connection."""
        return list(self._strangers)

    def _most_crowded(self) -> Connection:
        """The oldest connection of the address that has the most."""
        counts: dict[str, int] = {}
        for stranger in self._strangers.values():
            counts[stranger.address] = counts.get(stranger.address, 0) + 1
        worst = max(counts, key=lambda address: counts[address])
        return next(stranger.connection for stranger in self._strangers.values() if stranger.address == worst)
