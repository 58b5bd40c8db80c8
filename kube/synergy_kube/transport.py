"""Requests to the API server: what is sent, how long an answer may take, and what an error becomes."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp

from synergy_kube import credentials
from synergy_kube.answers import Object, decode
from synergy_kube.connection import Connection, without_credentials
from synergy_kube.errors import LongAnswer, error_of
from synergy_kube.resources import Resource

_TIMEOUT_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
"""How long a server may send nothing after a request. A network may drop a connection silently. The server then never
gets the request."""
UNREACHABLE = "unreachable"
"""In place of a code where the API server did not answer."""


class Requests:
    """Sends requests. Every method raises ApiError (NotFound, Conflict, Gone) with the API server's words, and
    aiohttp.ClientError or TimeoutError when the server cannot be reached."""

    def __init__(self, configuration: Any) -> None:
        """`configuration` is one of the `kubernetes` package."""
        self.on_error: Callable[[str], None] = lambda code: None
        """Called for each request that fails, with the answer's code or `unreachable`."""
        self._connection = Connection(configuration)

    @classmethod
    async def connect(cls, kubeconfig: str | None = None, context: str | None = None) -> Self:
        """A client for the cluster of `kubeconfig`, else of the pod this runs in, else of the user's default."""
        return cls(await credentials.load(kubeconfig, context))

    @classmethod
    def at(cls, url: str) -> Self:
        """A client for an API server that asks for no credentials, such as `kubectl proxy`."""
        return cls(without_credentials(url))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def server_version(self) -> str:
        """The API server's version, such as v1.36.3."""
        return str((await self._call("GET", "/version"))["gitVersion"])

    async def get_path(self, path: str) -> Object:
        """What the API server answers at a path of its own, such as /openapi/v3."""
        return await self._call("GET", path)

    async def serves(self, resource: Resource, subresource: str) -> bool:
        """Whether the API server's discovery lists this subresource."""
        listed = await self._call("GET", resource.group_path)
        return any(item.get("name") == f"{resource.plural}/{subresource}" for item in listed.get("resources") or [])

    async def date(self) -> str:
        """The Date header of an answer: the time of the API server, or of a proxy before it."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        async with await self._connection.send("GET", "/version", timeout=timeout) as response:
            return str(response.headers.get("Date", ""))

    async def bearer_token(self) -> str:
        """The token that requests bear; empty if they bear none."""
        return await self._connection.bearer_token()

    async def get_from_service(
        self, service: str, namespace: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> bytes:
        """What a Service NAME:PORT answers at a path. The API server passes the request on (`services/proxy`), with
        these headers, but without the caller's credentials."""
        whole = f"/api/v1/namespaces/{namespace}/services/{service}/proxy{path}"
        return await self._bytes("GET", whole, query=query, headers=headers, silent_s=_TIMEOUT_SECONDS)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        answer = decode(await self._bytes(method, path, body=body, query=query, content_type=content_type))
        return answer if isinstance(answer, dict) else {}

    async def _bytes(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        silent_s: float | None = None,
        most_bytes: int = 0,
    ) -> bytes:
        """The body of an answer. Raises LongAnswer as soon as it has more than `most_bytes`; 0 is no limit."""
        timeout = aiohttp.ClientTimeout(
            total=_TIMEOUT_SECONDS, sock_connect=_ANSWER_SECONDS, sock_read=silent_s or _ANSWER_SECONDS
        )
        try:
            async with await self._connection.send(
                method, path, query=query, body=body, content_type=content_type, timeout=timeout, more_headers=headers
            ) as response:
                answer = await _body(response, most_bytes)
        except (aiohttp.ClientError, TimeoutError):
            self.on_error(UNREACHABLE)
            raise
        if response.status >= 400:
            self.on_error(str(response.status))
            raise error_of(response.status, decode(answer), response.headers.get("Retry-After"))
        return answer

    @asynccontextmanager
    async def _stream(
        self, path: str, query: Mapping[str, str], silent_s: float | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer of any length, which fails when nothing comes for `silent_s`."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_ANSWER_SECONDS, sock_read=silent_s)
        async with await self._connection.send("GET", path, query=query, timeout=timeout) as response:
            if response.status >= 400:
                self.on_error(str(response.status))
                raise error_of(response.status, decode(await response.read()))
            yield response


async def _body(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    if not most_bytes or response.status >= 400:
        return await response.read()
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most_bytes:
            response.close()  # closes its connection, so that the server stops sending
            raise LongAnswer
        parts.append(part)
    return b"".join(parts)
