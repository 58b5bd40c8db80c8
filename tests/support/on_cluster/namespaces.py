"""Namespaces for tests."""

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.errors import ApiError, NotFound
from synergy_kube.resources import CONFIG_MAPS, NAMESPACES, PODS, TRAINING_JOBS

_PREFIX = "test-"
_NO_JOBS = (404, 429)
"""The answers of a cluster without the product, or with definitions of this moment."""


@asynccontextmanager
async def fresh_namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A namespace in which pods can be made; it is deleted with all that is in it."""
    await _delete_jobs_without_namespace(kube)
    name = f"{_PREFIX}{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})

    async def usable() -> bool:
        try:
            return bool(await kube.get(CONFIG_MAPS, "kube-root-ca.crt", name))
        except NotFound:
            return False

    await eventually(usable, seconds=60, what=f"namespace {name} to be usable")
    yield name
    await kube.delete(NAMESPACES, name)


async def _delete_jobs_without_namespace(kube: KubeClient) -> None:
    """Now and then the API server lets a namespace go while a TrainingJob of it stays, which then takes part in all
    plans of later tests."""
    try:
        jobs = (await kube.list(TRAINING_JOBS))["items"]
    except ApiError as error:
        if error.code in _NO_JOBS:
            return
        raise
    there = {namespace["metadata"]["name"] for namespace in (await kube.list(NAMESPACES))["items"]}
    for job in jobs:
        if job["metadata"]["namespace"] not in there:
            with suppress(NotFound):
                await kube.delete(TRAINING_JOBS, job["metadata"]["name"], job["metadata"]["namespace"])


async def alone_on(kube: KubeClient, node: str, *, but: str = "") -> list[Mapping[str, Any]]:
    """Wait until the node has no pods of such namespaces but one's own (`but`): a namespace of an earlier test goes
    with delay, and its pods take room as long. The pods there that have not ended."""
    found: list[Mapping[str, Any]] = []

    async def alone() -> bool:
        pods = (await kube.list(PODS, field_selector=f"spec.nodeName={node}"))["items"]
        found[:] = [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        places = {pod["metadata"]["namespace"] for pod in pods} - {but}
        return not any(place.startswith(_PREFIX) for place in places)

    await eventually(alone, seconds=60, what=f"the pods of other tests to be gone from {node}")
    return found
