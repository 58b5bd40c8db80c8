"""A stand-in for Cluster Autoscaler: answers ProvisioningRequests as their API documents it, with fake nodes of kwok.

The definition has the fields that are used here, written from the published API (`autoscaling.x-k8s.io/v1`).
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from support.waiting import eventually
from synergy_api.timestamps import format_time
from synergy_kube import ApiError, KubeClient
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, POD_TEMPLATES, PROVISIONING_REQUESTS

Json = dict[str, Any]
_NAME: Final = "provisioningrequests.autoscaling.x-k8s.io"
_IMMUTABLE: Final = [{"rule": "self == oldSelf", "message": "Value is immutable"}]
_TEXT: Final = {"type": "string"}
_POD_SET: Final = {
    "type": "object",
    "required": ["count", "podTemplateRef"],
    "properties": {
        "count": {"type": "integer", "format": "int32", "minimum": 1},
        "podTemplateRef": {"type": "object", "required": ["name"], "properties": {"name": _TEXT}},
    },
}
_CONDITION: Final = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": dict.fromkeys(("type", "status", "lastTransitionTime", "reason", "message"), _TEXT),
}
DEFINITION: Final[Json] = {
    "metadata": {
        "name": _NAME,
        "annotations": {"api-approved.kubernetes.io": "unapproved, a part of the published API for tests"},
    },
    "spec": {
        "group": PROVISIONING_REQUESTS.group,
        "scope": "Namespaced",
        "names": {
            "kind": "ProvisioningRequest",
            "listKind": "ProvisioningRequestList",
            "plural": "provisioningrequests",
            "singular": "provisioningrequest",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["podSets", "provisioningClassName"],
                                "properties": {
                                    "provisioningClassName": {
                                        **_TEXT,
                                        "maxLength": 253,
                                        "x-kubernetes-validations": _IMMUTABLE,
                                    },
                                    "parameters": {
                                        "type": "object",
                                        "maxProperties": 100,
                                        "additionalProperties": {**_TEXT, "maxLength": 255},
                                    },
                                    "podSets": {
                                        "type": "array",
                                        "minItems": 1,
                                        "maxItems": 32,
                                        "items": _POD_SET,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"conditions": {"type": "array", "items": _CONDITION}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


@asynccontextmanager
async def provisioning_requests(kube: KubeClient) -> AsyncIterator[None]:
    """Meanwhile the API server has ProvisioningRequests."""
    await kube.apply(CUSTOM_RESOURCE_DEFINITIONS, _NAME, DEFINITION, manager="tests")

    async def served() -> bool:
        with suppress(ApiError):
            await kube.list(PROVISIONING_REQUESTS)
            return True
        return False

    async def unknown() -> bool:
        try:
            await kube.list(PROVISIONING_REQUESTS)
        except ApiError as error:
            return error.code == 404
        return False

    await eventually(served, seconds=20, what="ProvisioningRequests to be served")
    try:
        yield
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, _NAME)
        await eventually(unknown, seconds=60, what="ProvisioningRequests to be gone")


class Autoscaler:
    """Answers the requests of one namespace when it is told to. Its node groups have nodes of this shape."""

    def __init__(self, kube: KubeClient, namespace: str, **allocatable: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._allocatable = {"nvidia.com/gpu": "8", "cpu": "24", "memory": "96Gi", "pods": "110", **allocatable}
        self.nodes: list[str] = []
        """Names of the nodes that it has made."""

    async def requests(self) -> list[Json]:
        """The requests there are."""
        items: list[Json] = (await self._kube.list(PROVISIONING_REQUESTS, self._namespace))["items"]
        return items

    async def asked(self, pool: str) -> Json:
        """The request for nodes of the pool, once there is one."""

        async def there() -> Json | None:
            found = [one for one in await self.requests() if one["metadata"]["labels"]["kube-synergy.dev/pool"] == pool]
            return found[0] if found else None

        return await eventually(there, seconds=20, what=f"a request for nodes of {pool}", every=0.05)

    async def provide(self, request: Json) -> None:
        """Make the nodes, and report them: as many as the pod template's pods need, with its node labels."""
        (pods,) = request["spec"]["podSets"]
        template = await self._kube.get(POD_TEMPLATES, pods["podTemplateRef"]["name"], self._namespace)
        spec = template["template"]["spec"]
        gpus = int(spec["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
        assert gpus == int(self._allocatable["nvidia.com/gpu"]), "one pod for each node"
        await self._report(request, "Provisioned", "CapacityIsProvisioned", "capacity is provisioned")
        for index in range(pods["count"]):
            name = f"{request['metadata']['name']}-{index}"
            await self._kube.create(NODES, self._node(name, spec["nodeSelector"]))
            self.nodes.append(name)

    async def refuse(self, request: Json, message: str) -> None:
        """Report that there will be no nodes."""
        await self._report(request, "Failed", "CapacityIsNotFound", message)

    async def _report(self, request: Json, kind: str, reason: str, message: str) -> None:
        at = format_time(time.time())
        accepted = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "accepted"}
        told = {"type": kind, "status": "True", "reason": reason, "message": message}
        conditions = [{**one, "lastTransitionTime": at} for one in (accepted, told)]
        name = request["metadata"]["name"]
        body = {"status": {"conditions": conditions}}
        await self._kube.merge_patch(PROVISIONING_REQUESTS, name, body, self._namespace, subresource="status")

    def _node(self, name: str, labels: dict[str, str]) -> Json:
        return {
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/hostname": name, "type": "kwok", **labels},
            },
            "status": {"capacity": self._allocatable, "allocatable": self._allocatable},
        }

    async def remove_all(self) -> None:
        """Take its nodes away."""
        for name in self.nodes:
            await self._kube.delete(NODES, name)
