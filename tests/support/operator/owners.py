"""Writers of managed objects, for tests without any."""

import asyncio
from typing import Any

from synergy_operator.edge.caches.pod_events import PodEventCache
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.managed.writer import OwnerWriter
from synergy_operator.edge.warning_reader import WarningReader


def no_owners(server: Any) -> OwnerWriter:
    """A writer that knows no kind."""
    return OwnerWriter(server, {}, EventQueue(asyncio.Event()), lambda: 0.0)


def no_warnings(client: Any) -> WarningReader:
    """For who asks for no warnings."""
    return WarningReader(client, PodEventCache(), clock=lambda: 0.0, wake=lambda _: None)
