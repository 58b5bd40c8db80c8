"""What a kubelet writes about containers: how they end; and the token it gives them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp

from support.extender.world import SERVICE_ACCOUNTS
from synergy_api import names
from synergy_api.timestamps import format_time
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import PODS

Object = Mapping[str, Any]
_AGAIN_SECONDS = 0.5


class Kubelet:
    """Writes to the API server until it gets through, as a kubelet does."""

    def __init__(self, kube: KubeClient, clock: Any) -> None:
        self._kube = kube
        self._clock = clock
        self._ended: dict[str, dict[str, Any]] = {}

    async def token(self, pod: Object) -> str | None:
        """A token of the pod's service account, bound to the pod, for the extender; None if the pod is gone."""
        metadata = pod["metadata"]
        reference = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"expirationSeconds": 3600, "audiences": [names.TOKEN_AUDIENCE], "boundObjectRef": reference}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        while True:
            try:
                answer = await self._kube.create_subresource(
                    SERVICE_ACCOUNTS, "default", "token", body, metadata["namespace"]
                )
                return str(answer["status"]["token"])
            except (NotFound, Conflict):
                return None
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(_AGAIN_SECONDS)

    async def end(self, pod: Object, code: int, *, message: str = "", reason: str = "") -> None:
        """The pod's containers have ended so."""
        terminated = {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "message": message,
            "finishedAt": format_time(self._clock()),
        }
        statuses = []
        for status in (pod.get("status") or {}).get("containerStatuses") or []:
            started = (status.get("state") or {}).get("running") or {}
            at = {"startedAt": started["startedAt"]} if "startedAt" in started else {}
            statuses.append({**status, "ready": False, "started": False, "state": {"terminated": terminated | at}})
        phase = "Succeeded" if code == 0 else "Failed"
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"phase": phase, "containerStatuses": statuses}}
        self._ended[pod["metadata"]["uid"]] = body
        await self._write(pod, body)

    async def refuse(self, pod: Object, reason: str) -> None:
        """The node does not take the pod: none of its containers ever started."""
        message = f"Pod was rejected: Node didn't have enough resource: {reason.removeprefix('OutOf')}"
        status = {"phase": "Failed", "reason": reason, "message": message, "containerStatuses": None}
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        self._ended[pod["metadata"]["uid"]] = body
        await self._write(pod, body)

    def has_ended(self, pod: Object) -> bool:
        """Whether `end` was called for the pod."""
        return pod["metadata"]["uid"] in self._ended

    async def insist(self, pod: Object) -> None:
        """Write the end again where another writer (kwok, with an older copy) has put something else in its place."""
        body = self._ended.get(pod["metadata"]["uid"])
        status = pod.get("status") or {}
        states = [item.get("state") or {} for item in status.get("containerStatuses") or []]
        if body is not None and (status.get("phase") != body["status"]["phase"] or any("running" in s for s in states)):
            await self._write(pod, body)

    async def _write(self, pod: Object, body: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        while True:
            try:
                await self._kube.merge_patch(PODS, metadata["name"], body, metadata["namespace"], subresource="status")
            except (NotFound, Conflict):
                return
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return
