"""The stream of changes: server-sent events, read by fetch, which sends the token as a header."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from pydantic import TypeAdapter

from synergy_dashboard.api.answers import Change
from synergy_dashboard.api.live_pages import change_of
from synergy_dashboard.live.changes import RowChanges
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope

MOST_STREAMS: Final = 200
_QUIET_SECONDS: Final = 15.0
"""After so long without a change a comment is sent: proxies close what is silent."""
_REVIEW_SECONDS: Final = 60.0
_WHOLE: Final = ("types", "tenants", "waiting_by_reason")
_CHANGE: Final = TypeAdapter(Change)


async def events(
    live: LiveCluster, scope: Scope, again: Callable[[Scope], Awaitable[Scope | None]], clock: Callable[[], float]
) -> AsyncIterator[bytes]:
    """One event at once, in which nothing has changed: what the page then asks for is not older than the stream. Ends
    when the user may see nothing any more: `again` says so, which is asked once a minute."""
    with live.subscribed() as subscriber:
        seen, reviewed_at = scope, clock()
        yield _event(change_of(live, RowChanges(), seen))
        told = Told()
        while True:
            changes = await subscriber.next(_QUIET_SECONDS)
            if clock() >= reviewed_at + _REVIEW_SECONDS:
                newest = await again(seen)
                if newest is None:
                    return
                seen, reviewed_at = newest, clock()
            change = told.news(change_of(live, changes, seen)) if changes is not None else None
            if change is not None:
                yield _event(change)
            elif changes is None:
                yield b": quiet\n\n"


class Told:
    """What a page knows already: a change of hidden jobs is none to it."""

    def __init__(self) -> None:
        self._last: dict[str, object] = {}

    def news(self, change: Change) -> Change | None:
        """The change without what has not changed; None where nothing is left."""
        known: dict[str, Any] = {name: None for name in _WHOLE if self._last.get(name) == getattr(change, name)}
        self._last |= {name: value for name in _WHOLE if (value := getattr(change, name)) is not None}
        change = replace(change, **known)
        left = (change.jobs, change.queue, change.nodes, *(getattr(change, name) for name in _WHOLE))
        return change if any(part not in (None, {}) for part in left) else None


def _event(change: Change) -> bytes:
    return b"event: change\ndata: " + _CHANGE.dump_json(change) + b"\n\n"
