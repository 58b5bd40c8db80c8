"""Requests to the API server."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from synergy_kube import credentials
from synergy_kube.answers import Object, Page, decode, event_of, lines_of
from synergy_kube.connection import Connection, without_credentials
from synergy_kube.errors import ApiError, error_of
from synergy_kube.resources import PODS, Resource
from synergy_kube.undeclared import Paths, prune

Served = Mapping[Resource, Paths]

_TIMEOUT_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
"""How long a server that has been asked may say nothing: a network may forget a connection without a word, and what is
asked over it is never heard."""
WATCH_SECONDS = 10
"""After how long the server is to end a watch."""
SILENT_SECONDS = 15.0
"""A watch is dead when nothing has come for so long, not even its end: what was read by then must not be taken for the
present for long."""
UNREACHABLE = "unreachable"
"""In place of a code where the API server did not answer."""
_WATCH_CHUNK = 1 << 16
PAGE_ITEMS = 500
"""How many objects of a large collection are asked for at once, as kube-apiserver's own clients do."""
_PAGES_MOST = 10_000


class KubeClient:
    """An asynchronous client. Every method raises ApiError (NotFound, Conflict, Gone) with the API server's words,
    aiohttp.ClientError or TimeoutError when the server cannot be reached."""

    def __init__(self, configuration: Any) -> None:
        """`configuration` is one of the `kubernetes` package."""
        self.on_error: Callable[[str], None] = lambda code: None
        """Is told of each request that fails: the answer's code, or `unreachable`."""
        self._connection = Connection(configuration)
        self.undeclared: Served = {}
        """What `apply` leaves out, because the served schemas do not declare it."""

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

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """One object."""
        return await self._call("GET", resource.path(namespace, name))

    async def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Object:
        """A collection in one answer: `items`, and `metadata.resourceVersion` to watch from. It is held in memory as a
        whole: use `pages` for one that may be large."""
        return await self._call("GET", resource.path(namespace), query=_selectors(label_selector, field_selector))

    async def page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        most: int = PAGE_ITEMS,
        after: str = "",
    ) -> Page:
        """At most `most` objects of a collection (0: all of them), those that follow the page whose `rest` is `after`.

        Every page has its own time limit. Raises Gone if `after` is too old to go on from: begin anew.
        """
        query = _selectors(label_selector, "") | ({"limit": str(most)} if most else {})
        query |= {"continue": after} if after else {}
        return Page(await self._bytes("GET", resource.path(namespace), query=query))

    async def pages(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", most: int = PAGE_ITEMS
    ) -> AsyncGenerator[Page]:
        """A collection that may be large, in pages that all show the same version. Handle each page before you ask for
        the next: only one is in memory.

        Raises Gone if the API server forgets that version before the last page: begin anew, with larger pages.
        """
        rest = ""
        for _ in range(_PAGES_MOST):
            page = await self.page(resource, namespace, label_selector=label_selector, most=most, after=rest)
            rest = page.rest
            yield page
            del page
            if not rest:
                return
        raise ApiError(500, "TooManyPages", f"the list of {resource.plural} does not end")

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
        """Server-side apply: after it `manager` owns exactly the fields in `body`, less those that are `undeclared`.

        With `metadata.resourceVersion` in `body` it is refused (Conflict) if the object changed since.
        """
        body = prune(body, self.undeclared.get(resource, frozenset()))
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
        strict: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """JSON merge patch (RFC 7386): lists are replaced whole. With `strict` an unknown field is an error."""
        query = ({"fieldValidation": "Strict"} if strict else {}) | ({"dryRun": "All"} if dry_run else {})
        return await self._call(
            "PATCH",
            resource.path(namespace, name, subresource),
            body=body,
            query=query,
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
        async with await self._connection.send(
            "GET", resource.path(namespace), query=query, timeout=timeout
        ) as response:
            if response.status >= 400:
                self.on_error(str(response.status))
                raise error_of(response.status, decode(await response.read()))
            buffer = bytearray()
            async for chunk in response.content.iter_chunked(_WATCH_CHUNK):
                buffer += chunk
                *lines, rest = bytes(buffer).split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    if line:
                        yield event_of(line)

    async def log_lines(
        self, pod: str, namespace: str, *, container: str = "", follow: bool = False, tail: int | None = None
    ) -> AsyncIterator[bytes]:
        """A container's log by line, without the line ends; with `follow` until the container ends. The container may
        be left out where the pod has one only."""
        query = {"follow": "true"} if follow else {}
        query |= {"container": container} if container else {}
        query |= {"tailLines": str(tail)} if tail is not None else {}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_ANSWER_SECONDS)
        path = PODS.path(namespace, pod, "log")
        async with await self._connection.send("GET", path, query=query, timeout=timeout) as response:
            if response.status >= 400:
                raise error_of(response.status, decode(await response.read()))
            async for line in lines_of(response.content.iter_any()):
                yield line

    async def date(self) -> str:
        """The Date header of an answer: what the API server, or what stands before it, takes for the time."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        async with await self._connection.send("GET", "/version", timeout=timeout) as response:
            return str(response.headers.get("Date", ""))

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
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS, sock_connect=_ANSWER_SECONDS, sock_read=_ANSWER_SECONDS)
        try:
            async with await self._connection.send(
                method, path, query=query, body=body, content_type=content_type, timeout=timeout
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError):
            self.on_error(UNREACHABLE)
            raise
        if response.status >= 400:
            self.on_error(str(response.status))
            raise error_of(response.status, decode(answer), response.headers.get("Retry-After"))
        return answer


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    pairs = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in pairs.items() if value}


def _typed(resource: Resource, body: Mapping[str, Any]) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}
