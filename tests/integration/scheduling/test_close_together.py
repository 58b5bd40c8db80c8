"""Placement by skew on a cluster: who minds to be spread waits in words, who does not goes ahead on what is left."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from support.on_cluster.jobs import fake_template, matrix, reaches, submit
from support.on_cluster.neighbours import HOST, label
from support.on_cluster.observer import Observer
from support.waiting import eventually
from synergy_api.names import MANAGER_PROGRESS
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.integration

GIB = 1 << 30
Json = dict[str, Any]


@pytest_asyncio.fixture
async def nodes(kube: KubeClient) -> AsyncIterator[list[str]]:
    """Two fake nodes with 8 GPUs each that only this test's jobs ask for."""
    names = ["fake-t4-023", "fake-t4-024"]
    await label(kube, names, pool="close")
    yield names
    await label(kube, names, pool=None)


def job(gpus: int, seconds: int, on: Json | None = None, **spec: Any) -> Json:
    """A job whose workers run for so long, on nodes with the labels `on`."""
    template = fake_template(seconds)
    template["spec"] |= {"nodeSelector": on or {"pool": "close"}, "terminationGracePeriodSeconds": 0}
    curve = {1000 * gpus: float(gpus), 3000 * gpus: float(gpus)}
    profile = {"mode": "Provided", "matrices": [matrix("T4", curve, gpus * GIB)]}
    more = {"preemption": "Signal", "profile": profile, "template": template}
    return {"gpus": gpus, "steps": 100, "gpuTypes": ["T4"], **more, **spec}


async def test_a_job_that_minds_to_be_spread_waits_and_says_so(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]], nodes: list[str]
) -> None:
    """Five GPUs of each node are taken: six are free, three and three, until one of those who have them goes."""

    async def status_of(name: str) -> Json:
        found: Json = (await kube.get(TRAINING_JOBS, name, namespace)).get("status") or {}
        return found

    await policy(policy="fifo", mechanism="tune", roundSeconds=5, placement={"packLimitPercent": 30})
    async with Observer(kube) as observer:
        # jobs that are created in the same second stand in the queue by name: these must be ahead of the others
        for name, node in zip(("at-023", "at-024"), nodes, strict=True):
            await submit(kube, namespace, name, **job(5, 600, on={HOST: node}))
        for name in ("at-023", "at-024"):
            await reaches(kube, namespace, name, "Running", seconds=60)
        await submit(kube, namespace, "even", **job(6, 3, suspend=True))
        await submit(kube, namespace, "skewed", **job(6, 3, suspend=True))
        for name, largest in (("even", 10), ("skewed", 75)):
            await reaches(kube, namespace, name, "Suspended", seconds=30)
            said = {"status": {"progress": {"largestTensorBytes": largest, "modelBytes": 100}}}
            await kube.apply(
                TRAINING_JOBS, name, said, namespace=namespace, manager=MANAGER_PROGRESS, subresource="status"
            )
        await kube.merge_patch(TRAINING_JOBS, "skewed", {"spec": {"suspend": False}}, namespace)

        async def waits() -> Json | None:
            queue: Json = (await status_of("skewed")).get("queue") or {}
            return queue if queue.get("reason") == "WouldBeSpread" else None

        queue = await eventually(waits, seconds=60, what="skewed to wait for one node")
        assert "6" in queue["message"]
        await kube.merge_patch(TRAINING_JOBS, "even", {"spec": {"suspend": False}}, namespace)
        spread = await reaches(kube, namespace, "even", "Running", "Succeeded", seconds=30)
        assert spread["status"]["allocation"]["nodes"] == 2
        assert (await status_of("skewed"))["phase"] == "Queued", "it let the other one pass"
        await kube.delete(TRAINING_JOBS, "at-023", namespace)
        whole = await reaches(kube, namespace, "skewed", "Running", "Succeeded", seconds=60)
        assert whole["status"]["allocation"]["nodes"] == 1
        await reaches(kube, namespace, "skewed", "Succeeded", seconds=30)
    assert observer.broken == []
