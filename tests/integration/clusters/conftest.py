"""A hub and two worker clusters: the devcluster is `east`, with the product's processes and kwok; `west` and the hub
are control planes of their own, `west` with the product's processes and a node that starts no pod.

The controller runs as a process, with the rights that the chart gives it in the hub and a hub's kubeconfig in workers.
"""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

import synergy_devcluster
from support.extender.world import policy_of_5_s, replica, scheduler, without_the_product
from support.on_cluster.control_plane import ControlPlane, control_plane, rules_of
from support.on_cluster.service_account import kubeconfig_of
from support.operator.stage import running_operator
from support.programs import run
from synergy_devcluster.control_plane.pki import Authority
from synergy_devcluster.options import parse_fake_nodes
from synergy_kube import KubeClient
from synergy_kube.resources import NAMESPACES

AWAY_SECONDS = "2"


@dataclass(frozen=True)
class Clusters:
    """Clients of all three, and a namespace that each has."""

    hub: ControlPlane
    east: KubeClient
    west: ControlPlane
    namespace: str


@pytest_asyncio.fixture(scope="package")
async def clusters(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    custom_resources: None,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Clusters]:
    """All of them, with the controller."""
    folder, name = tmp_path_factory.mktemp("clusters"), f"clusters-{uuid.uuid4().hex[:8]}"
    authority = Authority(folder / "tls")
    authority.server("tls", ("localhost", "127.0.0.1"))
    chart = str(repository / "helm" / "kube-synergy")
    values = ("--set", "clusters.enabled=true,clusters.secret=s,clusters.worker.create=true")
    rendered = await run(devcluster, "helm", "template", "kube-synergy", chart, "--kube-version=1.36", *values)
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(control_plane(devcluster, repository, _made(folder / "hub-plane")))
        west = await stack.enter_async_context(control_plane(devcluster, repository, _made(folder / "west-plane")))
        (v100,) = parse_fake_nodes("V100=1x8")
        await west.add_node(v100)
        await stack.enter_async_context(without_the_product(kube))
        for plane in (hub, west):
            await plane.add_namespace(name)
        await kube.create(NAMESPACES, {"metadata": {"name": name}})
        stack.push_async_callback(kube.delete, NAMESPACES, name)
        kubeconfigs = _made(folder / "kubeconfigs")
        for worker, client, kubeconfig in (
            ("east", kube, devcluster.kubeconfig),
            ("west", west.kube, west.kubeconfig),
        ):
            await stack.enter_async_context(policy_of_5_s(client))
            running = await stack.enter_async_context(replica(kubeconfig, name, authority, f"{worker}-0"))
            await stack.enter_async_context(running_operator(kubeconfig, _made(folder / worker)))
            if worker == "east":
                program = devcluster.program("kube-scheduler")
                await stack.enter_async_context(scheduler(program, kubeconfig, running, _made(folder / "scheduler")))
            rights = kubeconfig_of(client, kubeconfig, rules_of(rendered, "kube-synergy-hub"), _made(folder / "rights"))
            (await stack.enter_async_context(rights)).rename(kubeconfigs / worker)
        await stack.enter_async_context(running_operator(hub.kubeconfig, _made(folder / "hub")))
        own = rules_of(rendered, "kube-synergy-clusters")
        file = await stack.enter_async_context(kubeconfig_of(hub.kube, hub.kubeconfig, own, _made(folder / "own")))
        await stack.enter_async_context(_controller(file, kubeconfigs, name, folder / "controller.log"))
        yield Clusters(hub, kube, west, name)


@asynccontextmanager
async def _controller(hub: Path, kubeconfigs: Path, namespace: str, log: Path) -> AsyncIterator[None]:
    environ = {
        **os.environ,
        "SYNERGY_KUBECONFIG": str(hub),
        "SYNERGY_CLUSTERS_FOLDER": str(kubeconfigs),
        "SYNERGY_CLUSTERS_NAMESPACE": namespace,
        "SYNERGY_CLUSTERS_AWAY_SECONDS": AWAY_SECONDS,
        "SYNERGY_HOST": "127.0.0.1",
        "SYNERGY_OPS_PORT": "0",
    }
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "synergy_clusters", env=environ, stdout=file, stderr=file
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0, f"it ended badly: {log}"


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
