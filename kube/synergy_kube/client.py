"""Requests to the API server."""

import io
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from synergy_kube import credentials
from synergy_kube.errors import Gone, error_of
from synergy_kube.resources import Resource

Object = dict[str, Any]

_TIMEOUT_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
"""How long a server that has been asked may say nothing: a network may forget a connection without a word, and what is
asked over it is never heard."""
_KEEP_SECONDS = 15.0
"""How long an idle connection is kept, for the same reason."""
WATCH_SECONDS = 10
"""After how long the server is to end a watch."""
SILENT_SECONDS = 15.0
"""A watch is dead when nothing has come for so long, not even its end: what was read by then must not be taken for the
present for long."""
UNREACHABLE = "unreachable"
"""In place of a code where the API server did not answer."""
_WATCH_CHUNK = 1 << 16
_CONNECTIONS = 64
_LARGE_BODY = 1 << 20
"""Bytes of a request's body from which on it is sent in pieces."""


class _Name(msgspec.Struct):
    name: str
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Name


class _ListOf(msgspec.Struct):
    metadata: dict[str, Any]
    items: list[msgspec.Raw]


_LIST = msgspec.json.Decoder(_ListOf)
_NAMED = msgspec.json.Decoder(_Named)


class Listing:
    """A collection as it was at `version`. Its objects are decoded one by one: thousands at once would take many times
    the memory that is kept of them."""

    def __init__(self, data: bytes) -> None:
        found = _LIST.decode(data)
        self.version = str(found.metadata["resourceVersion"])
        self._items = found.items

    def __iter__(self) -> Iterator[Object]:
        return (msgspec.json.decode(item) for item in self._items)

    def keys(self) -> set[tuple[str, str]]:
        """(namespace, name) of all of them; the namespace is empty for cluster resources."""
        named = (_NAMED.decode(item).metadata for item in self._items)
        return {(name.namespace, name.name) for name in named}


class KubeClient:
    """An asynchronous client. Every method raises ApiError (NotFound, Conflict, Gone) with the API server's words,
    aiohttp.ClientError or TimeoutError when the server cannot be reached."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, configuration: Any) -> None:
        self.on_error: Callable[[str], None] = lambda code: None
        """Is told of each request that fails: the answer's code, or `unreachable`."""
        self._session = session
        self._base_url = base_url.rstrip("/")
        self._configuration = configuration

    @classmethod
    async def connect(cls, kubeconfig: str | None = None, context: str | None = None) -> Self:
        """A client for the cluster of `kubeconfig`, else of the pod this runs in, else of the user's default."""
        configuration = await credentials.load(kubeconfig, context)
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        if not configuration.verify_ssl:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=_CONNECTIONS, keepalive_timeout=_KEEP_SECONDS),
        )
        return cls(session, configuration.host, configuration)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def server_version(self) -> str:
        """The API server's version, such as v1.36.3."""
        return str((await self._call("GET", "/version"))["gitVersion"])

    async def serves(self, resource: Resource, subresource: str) -> bool:
        """Whether the API server's discovery lists this subresource."""
        listed = await self._call("GET", resource.group_path)
        return any(item.get("name") == f"{resource.plural}/{subresource}" for item in listed.get("resources") or [])

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """One object."""
        return await self._call("GET", resource.path(namespace, name))

    async def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Object:
        """A collection: `items`, and `metadata.resourceVersion` to watch from."""
        return await self._call("GET", resource.path(namespace), query=_selectors(label_selector, field_selector))

    async def listing(self, resource: Resource, namespace: str | None = None, *, label_selector: str = "") -> Listing:
        """A collection that may be large."""
        return Listing(await self._bytes("GET", resource.path(namespace), query=_selectors(label_selector, "")))

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str | None = None, *, dry_run: bool = False
    ) -> Object:
        """Create an object, strictly validated. `apiVersion` and `kind` may be left out."""
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        return await self._call("POST", resource.path(namespace), body=_typed(resource, body), query=query)

    async def create_subresource(
        self, resource: Resource, name: str, subresource: str, body: Mapping[str, Any], namespace: str | None = None
    ) -> Object:
        """POST to a subresource, such as a pod's `binding` or `eviction`; `body` names its own kind."""
        return await self._call("POST", resource.path(namespace, name, subresource), body=body)

    async def replace(
        self, resource: Resource, name: str, body: Mapping[str, Any], namespace: str | None = None
    ) -> Object:
        """Replace an object; Conflict if it changed since the resourceVersion in `body`."""
        return await self._call("PUT", resource.path(namespace, name), body=_typed(resource, body))

    async def apply(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        manager: str,
        subresource: str | None = None,
        force: bool = True,
    ) -> Object:
        """Server-side apply: after it `manager` owns exactly the fields in `body`.

        With `metadata.resourceVersion` in `body` it is refused (Conflict) if the object changed since.
        """
        metadata = {**body.get("metadata", {}), "name": name}
        if namespace is not None:
            metadata["namespace"] = namespace
        return await self._call(
            "PATCH",
            resource.path(namespace, name, subresource),
            body={**_typed(resource, body), "metadata": metadata},
            query={"fieldManager": manager, "force": "true" if force else "false"},
            content_type="application/apply-patch+yaml",
        )

    async def merge_patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> Object:
        """JSON merge patch (RFC 7386): lists are replaced whole."""
        return await self._call(
            "PATCH",
            resource.path(namespace, name, subresource),
            body=body,
            content_type="application/merge-patch+json",
        )

    async def strategic_patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> Object:
        """Strategic merge patch: lists of containers and the like merge by name. Not for custom resources."""
        return await self._call(
            "PATCH",
            resource.path(namespace, name, subresource),
            body=body,
            content_type="application/strategic-merge-patch+json",
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_seconds: int | None = None,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> Object:
        """Delete an object; with `uid` only that very one (Conflict if another has taken its name)."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        return await self._call("DELETE", resource.path(namespace, name), body=options)

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[tuple[str, Object]]:
        """Events after `resource_version` as (ADDED | MODIFIED | DELETED | BOOKMARK, object), until the server ends
        the watch (at the latest after ten seconds: watch again from the last version seen).

        Raises Gone if `resource_version` is too old: list anew.
        """
        query = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_ANSWER_SECONDS, sock_read=SILENT_SECONDS)
        async with self._session.get(
            self._base_url + resource.path(namespace), params=query, headers=await self._headers(), timeout=timeout
        ) as response:
            if response.status >= 400:
                self.on_error(str(response.status))
                raise error_of(response.status, _decode(await response.read()))
            buffer = bytearray()
            async for chunk in response.content.iter_chunked(_WATCH_CHUNK):
                buffer += chunk
                *lines, rest = bytes(buffer).split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    if line:
                        yield _event(line)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        answer = _decode(await self._bytes(method, path, body=body, query=query, content_type=content_type))
        return answer if isinstance(answer, dict) else {}

    async def _bytes(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        headers = await self._headers()
        data: bytes | io.BytesIO | None = None
        if body is not None:
            encoded = msgspec.json.encode(body)
            # in one piece a large body would hold up the event loop
            data = io.BytesIO(encoded) if len(encoded) > _LARGE_BODY else encoded
            headers["Content-Type"] = content_type
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS, sock_connect=_ANSWER_SECONDS, sock_read=_ANSWER_SECONDS)
        try:
            async with self._session.request(
                method, self._base_url + path, params=query, data=data, headers=headers, timeout=timeout
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError):
            self.on_error(UNREACHABLE)
            raise
        if response.status >= 400:
            self.on_error(str(response.status))
            raise error_of(response.status, _decode(answer), response.headers.get("Retry-After"))
        return answer

    async def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        for setting in (await self._configuration.auth_settings()).values():
            if setting["value"]:
                headers[setting["key"]] = setting["value"]
        return headers


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    pairs = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in pairs.items() if value}


def _typed(resource: Resource, body: Mapping[str, Any]) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data) if data else {}
    except msgspec.DecodeError:
        return data.decode(errors="replace")


def _event(line: bytes) -> tuple[str, Object]:
    event = msgspec.json.decode(line)
    if event["type"] == "ERROR":
        code = int(event["object"].get("code") or 500)
        error = error_of(code, event["object"])
        raise Gone(code, error.reason, error.message) if error.reason == "Expired" else error
    return event["type"], event["object"]
