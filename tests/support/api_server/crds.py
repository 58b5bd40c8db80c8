"""The project's custom resource definitions on a test's API server."""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from support.on_cluster.namespaces import fresh_namespace
from support.waiting import eventually
from synergy_api.names import API_VERSION
from synergy_kube import KubeClient
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, RESOURCE_QUOTAS, TRAINING_JOBS

_COUNT_SECONDS: Final = 1.0
"""For which a quota is given time to be counted."""
_COUNTED: Final = "count/trainingjobs.kube-synergy.dev"


async def apply_crds(kube: KubeClient, repository: Path) -> None:
    """Apply those of `crds/` and wait until they are established."""
    for file in sorted((repository / "crds").glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())
        name = definition["metadata"]["name"]
        await kube.apply(CUSTOM_RESOURCE_DEFINITIONS, name, definition, manager="tests")

        async def established(name: str = name) -> bool:
            status = (await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)).get("status", {})
            conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
            return conditions.get("Established") == "True"

        await eventually(established, seconds=20, what=f"{name} to be established")


async def known_to_controllers(kube: KubeClient) -> None:
    """Wait until kube-controller-manager counts TrainingJobs in quotas, and deletes those whose owner is gone. It looks
    for new definitions every 30 s. A quota that was made before counts them only when all quotas are counted anew, some
    minutes later: so each look is at a new one."""
    async with fresh_namespace(kube) as namespace:

        async def counted() -> bool:
            body = {"metadata": {"generateName": "jobs-"}, "spec": {"hard": {_COUNTED: "5"}}}
            name = (await kube.create(RESOURCE_QUOTAS, body, namespace))["metadata"]["name"]
            await asyncio.sleep(_COUNT_SECONDS)
            status = (await kube.get(RESOURCE_QUOTAS, name, namespace)).get("status") or {}
            await kube.delete(RESOURCE_QUOTAS, name, namespace)
            return _COUNTED in (status.get("used") or {})

        await eventually(counted, seconds=150, what="TrainingJobs to count in quotas")
        owner = await kube.create(TRAINING_JOBS, _idle_job("owner"), namespace)
        reference = {"apiVersion": API_VERSION, "kind": "TrainingJob", "name": "owner", "uid": owner["metadata"]["uid"]}
        await kube.create(TRAINING_JOBS, _idle_job("owned", ownerReferences=[reference]), namespace)
        await kube.delete(TRAINING_JOBS, "owner", namespace)

        async def gone() -> bool:
            return not (await kube.list(TRAINING_JOBS, namespace))["items"]

        await eventually(gone, seconds=90, what="a TrainingJob to go with its owner")


def _idle_job(name: str, **metadata: Any) -> dict[str, Any]:
    """A job that nobody acts for."""
    container = {"name": "train", "image": "x", "command": ["x"]}
    spec = {"gpus": 1, "steps": 1, "managedBy": "example.com/nobody", "template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


@asynccontextmanager
async def without_fields(
    kube: KubeClient, repository: Path, plural: str, *paths: tuple[str, ...]
) -> AsyncIterator[None]:
    """Meanwhile the served definition of this kind does not declare these fields, as an older one would not."""
    definition = yaml.safe_load((repository / "crds" / f"kube-synergy.dev_{plural}.yaml").read_text())
    name = definition["metadata"]["name"]
    older = copy.deepcopy(definition)
    for *way, last in paths:
        schema = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for step in way:
            schema = schema["items"] if step == "[]" else schema["properties"][step]
        del schema["properties"][last]
    await kube.apply(CUSTOM_RESOURCE_DEFINITIONS, name, older, manager="tests")
    try:
        yield
    finally:
        await kube.apply(CUSTOM_RESOURCE_DEFINITIONS, name, definition, manager="tests")
