"""Writers of managed objects, for tests without any."""

import asyncio
from typing import Any

from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.managed.writer import OwnerWriter


def no_owners(server: Any) -> OwnerWriter:
    """A writer that knows no kind."""
    return OwnerWriter(server, {}, EventQueue(asyncio.Event()), lambda: 0.0)
