"""The project's custom resource definitions on a test's API server."""

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
