"""What the API server answers, decoded by msgspec: one object, a page of a collection, an event of a watch."""

from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Any

import msgspec

from synergy_kube.errors import Gone, error_of

Object = dict[str, Any]


class _ListOf(msgspec.Struct):
    metadata: dict[str, Any]
    items: list[msgspec.Raw] | None = None
    """Of metadata alone, null where there are none."""


_LIST = msgspec.json.Decoder(_ListOf)


class _Metadata(msgspec.Struct):
    name: str
    resourceVersion: str  # noqa: N815 - as the API server spells it
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata


_NAMED = msgspec.json.Decoder(_Named)


class Page:
    """A part of a collection as the whole was at `version`; `rest` is the token for the next part, empty at the end.

    Its objects are decoded one by one: thousands at once would take many times the memory that is kept of them.
    """

    def __init__(self, data: bytes) -> None:
        found = _LIST.decode(data)
        self.version = str(found.metadata["resourceVersion"])
        self.rest = str(found.metadata.get("continue") or "")
        self.size = len(data)
        """Bytes of the answer."""
        self._items = found.items or []

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Object]:
        return (msgspec.json.decode(item) for item in self._items)

    def versions(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Namespace and name of each object, and its resourceVersion. The rest is not decoded."""
        for one in map(_NAMED.decode, self._items):
            yield (one.metadata.namespace, one.metadata.name), one.metadata.resourceVersion

    def drop(self) -> None:
        """Forget the objects, also where somebody still holds the page."""
        self._items = []


def decode(data: bytes) -> Any:
    """What a body says; its text if that is no JSON, and an empty object if there is none."""
    try:
        return msgspec.json.decode(data) if data else {}
    except msgspec.DecodeError:
        return data.decode(errors="replace")


def event_of(line: bytes) -> tuple[str, Object]:
    """The type and object of a line of a watch. Raises ApiError, or Gone if the watch must begin anew."""
    event = msgspec.json.decode(line)
    if event["type"] == "ERROR":
        code = int(event["object"].get("code") or 500)
        error = error_of(code, event["object"])
        raise Gone(code, error.reason, error.message) if error.reason == "Expired" else error
    return event["type"], event["object"]


async def lines_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The lines of a text that comes in pieces, however long they are, without their ends."""
    begun = bytearray()
    async for chunk in chunks:
        first, *more = chunk.split(b"\n")
        begun += first
        for line in more:
            yield bytes(begun)
            begun = bytearray(line)
    if begun:
        yield bytes(begun)
