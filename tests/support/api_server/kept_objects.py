"""A client of an API server that is a dictionary: reads and writes of single objects, with versions and uids."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import Resource

Object = dict[str, Any]


class KeptObjects(KubeClient):
    """`refuses` says which code a verb is answered with."""

    def __init__(self, *items: Object) -> None:
        self.items: dict[tuple[str | None, str], Object] = {}
        self.refuses: dict[str, int] = {}
        self._numbers = count(1)
        for item in items:
            self._keep(item)

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """The object as it is kept."""
        self._asked("get")
        if (namespace, name) not in self.items:
            raise NotFound(404, "NotFound", f"{name} not found")
        return self.items[namespace, name]

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str | None = None, *, dry_run: bool = False
    ) -> Object:
        """Give it a uid, unless the name is taken."""
        self._asked("create")
        if (namespace, body["metadata"]["name"]) in self.items:
            raise Conflict(409, "AlreadyExists", f"{body['metadata']['name']} already exists")
        uid = f"uid-{next(self._numbers)}"
        return self._keep({**body, "metadata": {**body["metadata"], "uid": uid}})

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
        """RFC 7386."""
        self._asked("patch")
        before = await self._same(resource, name, body, namespace)
        return self._keep(_merged(before, body))

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
        """The whole status, which has one writer."""
        self._asked("apply")
        before = await self._same(resource, name, body, namespace)
        return self._keep({**before, "status": body["status"]})

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
        """At once, without finalizers."""
        self._asked("delete")
        await self._same(resource, name, {"metadata": {"uid": uid}}, namespace)
        return self.items.pop((namespace, name))

    def _asked(self, verb: str) -> None:
        if code := self.refuses.get(verb):
            raise ApiError(code, "Refused", f"{verb} is refused")

    async def _same(self, resource: Resource, name: str, body: Mapping[str, Any], namespace: str | None) -> Object:
        before = await self.get(resource, name, namespace)
        for field in ("uid", "resourceVersion"):
            wanted = body.get("metadata", {}).get(field)
            if wanted is not None and wanted != before["metadata"][field]:
                raise Conflict(409, "Conflict", f"{name} has another {field}")
        return before

    def _keep(self, item: Object) -> Object:
        metadata = {**item["metadata"], "resourceVersion": str(next(self._numbers))}
        kept = {**item, "metadata": metadata}
        self.items[metadata["namespace"], metadata["name"]] = kept
        return kept


def _merged(before: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    result = dict(before) if isinstance(before, Mapping) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = _merged(result.get(field), value)
    return result
