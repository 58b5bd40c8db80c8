"""Fields that a component writes and the cluster's CustomResourceDefinitions do not declare.

Helm never upgrades what is in a chart's `crds` folder, so a newer component may meet an older definition. Server-side
apply then refuses the whole object for one such field.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp

from synergy_kube.client import KubeClient
from synergy_kube.errors import ApiError
from synergy_kube.resources import Resource
from synergy_kube.undeclared import ITEMS, Paths, Schema, undeclared
from synergy_kube.writes import Served

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 10.0


def told(resource: Resource, paths: Paths) -> str:
    """The undeclared fields of one resource for people, such as `trainingjobs.kube-synergy.dev: status.late`."""
    fields = ", ".join(sorted(".".join(path).replace(f".{ITEMS}", ITEMS) for path in paths))
    return f"{resource.plural}.{resource.group}: {fields}"


def told_all(served: Served) -> str:
    """The undeclared fields of all resources for people; empty where there are none."""
    return "; ".join(sorted(told(resource, paths) for resource, paths in served.items()))


class SchemaWatch:
    """Gives a client the fields that it must leave out, at the start and whenever the served schemas change.

    It reads the API server's OpenAPI documents, which `system:discovery` opens to every authenticated client. `own` has
    the schema of what `component` writes of each resource; all are of one group and version. `changed` is called with
    the first state and each new one.
    """

    def __init__(
        self,
        client: KubeClient,
        own: Mapping[Resource, Schema],
        component: str,
        changed: Callable[[Served], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._own = own
        self._changed = changed
        self._component = component
        self._document = ""

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Look once. A look that fails leaves everything as it was."""
        try:
            await self._compare()
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            _LOG.warning("the served schemas cannot be read, the fields known so far are left out: %s", error)

    async def _compare(self) -> None:
        """Compare the schemas if they have changed since the last look."""
        group_path = next(iter(self._own)).group_path
        index = await self._client.get_path("/openapi/v3")
        place = (index.get("paths") or {}).get(group_path.removeprefix("/"))
        document = str((place or {}).get("serverRelativeURL") or "")
        if not document or document == self._document:
            return
        served = _schemas(await self._client.get_path(document))
        missing = {
            resource: paths
            for resource, schema in self._own.items()
            if resource.kind in served and (paths := undeclared(schema, served[resource.kind]))
        }
        first, self._document = not self._document, document
        if missing == self._client.undeclared and not first:
            return
        self._client.undeclared = missing
        self._tell(missing)
        self._changed(missing)

    def _tell(self, missing: Served) -> None:
        for resource, paths in missing.items():
            _LOG.warning(
                "a CustomResourceDefinition is older than %s, which leaves these fields out: %s; upgrade it with "
                "`kubectl apply --server-side --force-conflicts -f helm/kube-synergy/crds/`",
                self._component,
                told(resource, paths),
            )
        if not missing:
            _LOG.info("the CustomResourceDefinitions declare every field that %s writes", self._component)


def _schemas(document: Mapping[str, Any]) -> dict[str, Schema]:
    """The schemas of an OpenAPI document by kind; lists and other helpers name another kind or none."""
    schemas = ((document.get("components") or {}).get("schemas") or {}).values()
    return {
        str(kind["kind"]): schema for schema in schemas for kind in schema.get("x-kubernetes-group-version-kind") or ()
    }
