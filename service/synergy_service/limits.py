"""Limits of a request: its size and the time it takes."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_BODY_SECONDS = 10.0


class LimitBody:
    """ASGI middleware that reads the body first: 413 if it is larger than `most` bytes, 408 if it takes too long."""

    def __init__(self, app: App, most: int, seconds: float = _BODY_SECONDS) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Read the body and pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await _read(receive, self._most)
        except TimeoutError:
            await refuse(send, 408, "the request took too long")
            return
        if body is None:
            await refuse(send, 413, f"the request is larger than {self._most} bytes")
            return
        await self._app(scope, _replay(body, receive), send)


async def _read(receive: Receive, most: int) -> bytes | None:
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(parts)
        parts += message.get("body", b"")
        if len(parts) > most:
            return None
        if not message.get("more_body", False):
            return bytes(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def refuse(send: Send, status: int, text: str) -> None:
    """Answer with a text, and close the connection."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
