"""`bench client` against the real API server: each way writes what the others write, and nothing is left."""

import pytest

from synergy_cli.bench.client import writes
from synergy_kube import KubeClient
from synergy_kube.resources import NAMESPACES

pytestmark = pytest.mark.integration


async def test_every_write_is_timed_for_every_way_and_the_namespace_goes(
    kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "_WARM", 0)
    found = await writes.measure(1)
    assert {(one.write, one.way) for one in found} == {
        (write, way)
        for write in ("create a Job", "apply a status", "bind a pod")
        for way in ("aiohttp", "KubeClient", "kubernetes", "kubernetes, no models")
    }
    assert all(one.milliseconds > 0 for one in found)
    left = [one for one in (await kube.list(NAMESPACES))["items"] if one["metadata"]["name"].startswith("bench-")]
    assert all("deletionTimestamp" in one["metadata"] for one in left)
