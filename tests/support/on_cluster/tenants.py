"""Tenants for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synergy_kube import KubeClient
from synergy_kube.resources import TENANTS

_GENEROUS = {"maxWeight": 1e6, "maxNeverPreemptedGPUs": 1 << 20, "deadlines": "Allowed"}


@asynccontextmanager
async def all_allowed(kube: KubeClient, namespace: str) -> AsyncIterator[str]:
    """Meanwhile a Tenant lets the namespace's jobs ask for everything; its name."""
    name = f"all-allowed-{namespace}"
    await kube.create(TENANTS, {"metadata": {"name": name}, "spec": {"namespaces": [namespace], "caps": _GENEROUS}})
    try:
        yield name
    finally:
        await kube.delete(TENANTS, name)
