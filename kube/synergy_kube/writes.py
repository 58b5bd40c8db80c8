"""Writes: create, replace, server-side apply, patches, delete."""

from collections.abc import Mapping
from typing import Any

from synergy_kube.answers import Object
from synergy_kube.resources import Resource
from synergy_kube.transport import Requests
from synergy_kube.undeclared import Paths, prune

Served = Mapping[Resource, Paths]


class Writes(Requests):
    """Changes through the API server."""

    def __init__(self, configuration: Any) -> None:
        """`configuration` is one of the `kubernetes` package."""
        super().__init__(configuration)
        self.undeclared: Served = {}
        """What `apply` leaves out, because the served schemas do not declare it."""

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


def _typed(resource: Resource, body: Mapping[str, Any]) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}
