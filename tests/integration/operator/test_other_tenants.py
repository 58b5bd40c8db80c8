"""Extender, kube-scheduler and operator together: a job that is always refused attains no service and so is first under
LAS. Others train on the GPUs that it cannot use."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import synergy_devcluster
from support.extender.world import replica, scheduler
from support.on_cluster.jobs import fake_template
from support.operator.stage import Stage, condition
from support.waiting import eventually
from synergy_api.timestamps import parse_time
from synergy_devcluster.control_plane.pki import Authority
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import SCHEDULING_POLICIES, SERVICES

pytestmark = pytest.mark.integration

NODE = "fake-t4-007"
ROUND_S = 5


@pytest_asyncio.fixture
async def planner(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, stage: Stage, tmp_path: Path
) -> AsyncIterator[None]:
    """An extender with LAS and rounds of 5 s, and a kube-scheduler that asks it."""
    spec = {"policy": "las", "mechanism": "tune", "roundSeconds": ROUND_S}
    with_policy = {"metadata": {"name": "default"}, "spec": spec}
    before: dict[str, object] | None = None
    try:
        before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": spec})
    except NotFound:
        await kube.create(SCHEDULING_POLICIES, with_policy)
    authority = Authority(tmp_path)
    authority.server("tls", ("localhost", "127.0.0.1"))
    program = devcluster.program("kube-scheduler")
    try:
        async with replica(devcluster.kubeconfig, stage.namespace, authority, "extender-0") as extender:
            folder = tmp_path / "scheduler"
            folder.mkdir()
            async with scheduler(program, devcluster.kubeconfig, extender, folder):
                yield
    finally:
        if before is None:
            await kube.delete(SCHEDULING_POLICIES, "default")
        else:
            await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": before})


async def test_a_job_that_is_refused_again_and_again_leaves_the_gpus_to_others(stage: Stage, planner: None) -> None:
    taken = {"metadata": {"name": "tj-refused"}, "spec": {"clusterIP": "None", "selector": {"app": "shop"}}}
    await stage.kube.create(SERVICES, taken, stage.namespace)
    pod = fake_template(3600)
    pod["spec"] |= {"nodeSelector": {"kubernetes.io/hostname": NODE}, "terminationGracePeriodSeconds": 0}
    common = {"gpus": 8, "gpuTypes": ["Tesla-T4"], "template": pod, "preemption": "Signal"}
    await stage.submit("refused", **common)
    refused = await stage.until("two tries", lambda s: s.get("service", {}).get("refusals", 0) >= 2, name="refused",
                                seconds=60)  # fmt: skip
    assert condition(refused["status"], "Running")["reason"] == "ServiceRefused"
    await stage.submit("other", **common)
    await stage.phase("Running", name="other", seconds=60)

    async def tried_again() -> dict[str, object] | None:
        found: dict[str, object] = (await stage.job("refused"))["status"]
        return found if found["service"]["refusals"] >= 3 else None  # type: ignore[index]

    status = await eventually(tried_again, seconds=90, what="a third try, for which the other makes room", every=0.1)
    service = status["service"]
    assert isinstance(service, dict)
    wait = parse_time(service["retryAt"]) - parse_time(condition(status, "Running")["lastTransitionTime"])
    assert wait >= 40.0, "each try waits twice as long as the one before"
    back = await stage.phase("Running", name="other", seconds=30)
    assert back["service"]["attainedGPUSeconds"] > 0
