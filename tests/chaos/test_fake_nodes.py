"""The fake nodes, with which the harness plays: kwok, as the devcluster changes it, loses no event and no write."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
import yaml

from chaos.faults.api_server import STORE_LINK, UNREACHABLE
from chaos.faults.link import Break, Link
from chaos.faults.refusals import user_of
from chaos.programs import Program
from chaos.stage import API_SERVER_PORT, Stage, through
from support.on_cluster.service_account import kubeconfig_of
from support.waiting import eventually
from synergy_devcluster import Cluster
from synergy_kube import KubeClient
from synergy_kube.resources import NAMESPACES, NODES, PODS

pytestmark = pytest.mark.integration

NAMESPACE = "fake-nodes"
OURS = "kwok.kube-synergy.dev/own"
NODE = "fake-own"
RUN_SECONDS = 3


def pod(name: str, node: str, **annotations: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example/other:1"}
    spec = {"nodeName": node, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


async def runs(kube: KubeClient, name: str, node: str, seconds: float, **annotations: str) -> None:
    """Create the pod, and wait until it runs."""
    await kube.create(PODS, pod(name, node, **annotations), NAMESPACE)

    async def running() -> bool:
        return bool((await kube.get(PODS, name, NAMESPACE))["status"].get("phase") == "Running")

    await eventually(running, seconds=seconds, what=f"pod {name} to run")


@pytest_asyncio.fixture(scope="module", autouse=True)
async def namespace(kube: KubeClient, devcluster: Cluster) -> AsyncIterator[None]:
    await kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    try:
        yield
    finally:
        await kube.delete(NAMESPACES, NAMESPACE)


@asynccontextmanager
async def own_kwok(cluster: Cluster, kube: KubeClient, link: Link, folder: Path) -> AsyncIterator[str]:
    """A second kwok with one node, which reaches the API server through the link; the name of its account."""
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    async with kubeconfig_of(kube, cluster.kubeconfig, everything, folder) as file:
        file.write_text(yaml.safe_dump(through(file, link.port)))
        argv = [
            str(cluster.program("kwok")),
            f"--config={cluster.paths.config / 'kwok-stages.yaml'}",
            f"--kubeconfig={file}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={OURS}=true",
            "--cidr=10.99.0.0/24",
            "--node-lease-duration-seconds=10",
        ]
        program = Program("kwok", argv, {}, folder / "kwok.log")
        await kube.create(NODES, {"metadata": {"name": NODE, "annotations": {OURS: "true"}}})
        await program.start()

        async def ready() -> bool:
            conditions = (await kube.get(NODES, NODE)).get("status", {}).get("conditions") or []
            return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

        try:
            await eventually(ready, seconds=30, what="the node to be ready")
            yield user_of(file)
        finally:
            await program.stop()
            await kube.delete(NODES, NODE)


def watched_from(cluster: Cluster, user: str) -> list[str]:
    """The versions at which this user began to watch the pods, in order."""
    versions = []
    whole_lines = cluster.paths.audit_log.read_text().rpartition("\n")[0]  # the API server may be writing one
    for line in whole_lines.splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] != user or entry["stage"] != "ResponseStarted":
            continue
        request = urlsplit(entry["requestURI"])
        options = parse_qs(request.query)
        if request.path == "/api/v1/pods" and "watch" in options:
            versions += options.get("resourceVersion", [""])
    return versions


@pytest.mark.timeout(180)
async def test_a_watch_goes_on_where_the_one_before_ended(
    devcluster: Cluster, kube: KubeClient, tmp_path: Path
) -> None:
    async with (
        Link("kwok-api", lambda: [API_SERVER_PORT]) as link,
        own_kwok(devcluster, kube, link, tmp_path) as user,
    ):
        await runs(kube, "before", NODE, seconds=30)
        begun = len(watched_from(devcluster, user))
        link.fail(Break.CUT)
        await asyncio.sleep(0.5)
        link.heal()

        async def anew() -> bool:
            return len(watched_from(devcluster, user)) > begun

        await eventually(anew, seconds=60, what="kwok to watch the pods again")
        await runs(kube, "after", NODE, seconds=30)
        versions = watched_from(devcluster, user)
        assert begun >= 1
        assert all(int(version) > 0 for version in versions), versions


@pytest.mark.timeout(180)
async def test_a_write_that_etcd_did_not_take_is_made_again(whole: Stage) -> None:
    """The API server answers kwok meanwhile, and its watch stays as it is: nothing brings the pod to it again."""
    kube, link = whole.kube, whole.links[STORE_LINK]
    await runs(kube, "ending", "fake-v100-000", 30, **{"kwok.kube-synergy.dev/run-seconds": str(RUN_SECONDS)})
    await asyncio.sleep(RUN_SECONDS / 2)
    link.fail(Break.STALL)  # kwok's write waits for etcd
    await asyncio.sleep(RUN_SECONDS)
    link.fail(Break.CUT)  # and comes back with an error
    await asyncio.sleep(0.5)
    link.heal()

    async def succeeded() -> bool:
        try:
            return bool((await kube.get(PODS, "ending", NAMESPACE))["status"].get("phase") == "Succeeded")
        except UNREACHABLE:
            return False  # etcd is not back yet

    await eventually(succeeded, seconds=30, what="the pod to end")
