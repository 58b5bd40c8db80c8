"""The project's custom resource definitions on a test's API server."""

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS


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
