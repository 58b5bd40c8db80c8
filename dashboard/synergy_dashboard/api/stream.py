"""The stream of changes: server-sent events, read by fetch, which sends the token as a header."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter
from starlette.types import Receive, Send
from starlette.types import Scope as ScopeOfRequest

from synergy_dashboard.api.answers import Change
from synergy_dashboard.api.live_pages import change_of
from synergy_dashboard.api.problems import Refusal
from synergy_dashboard.live.changes import RowChanges, Subscriber
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope

MOST_STREAMS: Final = 200
MOST_OF_USER: Final = 20
"""Streams of one user: each tab of a browser has one."""
_QUIET_SECONDS: Final = 15.0
"""After so long without a change a comment is sent: proxies close what is silent."""
_REVIEW_SECONDS: Final = 60.0
_WHOLE: Final = ("types", "tenants", "waiting_by_reason", "policy")
Again = Callable[[Scope], Awaitable[Scope | None]]
_CHANGE: Final = TypeAdapter(Change)


class LiveStream(StreamingResponse):
    """The answer with the events of `events`. It subscribes at once, so that the bound on streams holds for requests
    that come together too, and unsubscribes at its end. Raises Refusal 429 or 503."""

    def __init__(self, live: LiveCluster, user: str, scope: Scope, again: Again, clock: Callable[[], float]) -> None:
        if live.subscribers_of(user) >= MOST_OF_USER:
            raise Refusal(429, f"{user} has {MOST_OF_USER} streams open; close a page that shows the cluster")
        if live.subscribers >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} streams are open; close one, or ask again later")
        self._open = ExitStack()
        subscriber = self._open.enter_context(live.subscribed(user))
        told = events(live, subscriber, scope, again, clock)
        super().__init__(told, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def __call__(self, scope: ScopeOfRequest, receive: Receive, send: Send) -> None:
        """Answer until either side ends it."""
        with self._open:
            await super().__call__(scope, receive, send)


async def events(
    live: LiveCluster, subscriber: Subscriber, scope: Scope, again: Again, clock: Callable[[], float]
) -> AsyncIterator[bytes]:
    """One event at once, in which nothing has changed: what the page then asks for is not older than the stream. Ends
    when the user may see nothing any more: `again` says so, which is asked once a minute."""
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
