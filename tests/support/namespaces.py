"""Namespaces for tests."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.errors import NotFound
from synergy_kube.resources import CONFIG_MAPS, NAMESPACES


@asynccontextmanager
async def fresh_namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A namespace in which pods can be made; it is deleted with all that is in it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})

    async def usable() -> bool:
        try:
            return bool(await kube.get(CONFIG_MAPS, "kube-root-ca.crt", name))
        except NotFound:
            return False

    await eventually(usable, seconds=60, what=f"namespace {name} to be usable")
    yield name
    await kube.delete(NAMESPACES, name)
