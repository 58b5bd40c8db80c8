"""What `kubectl synergy migrate` makes of the examples is applied as it is printed, and its jobs come to run."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from support.on_cluster.jobs import reaches
from support.programs import run
from support.waiting import eventually
from synergy_devcluster import Cluster
from synergy_kube import KubeClient, NotFound, Resource
from synergy_kube.resources import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, TENANTS, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("scheduling", "a100")]

Json = dict[str, Any]
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLAIM = "vision-data"


async def migrated(repository: Path, name: str) -> tuple[str, list[Json]]:
    """The output of the command for an example, and its objects."""
    program = Path(sys.executable).with_name("kube-synergy")
    command = [str(program), "migrate", str(repository / "examples" / "moving" / f"{name}.yaml"), "--gpu-type", "A100"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    text = (await process.communicate())[0].decode()
    assert process.returncode == 0
    return text, [one for one in yaml.safe_load_all(text) if one]


@pytest_asyncio.fixture
async def namespaces(kube: KubeClient) -> AsyncIterator[list[str]]:
    """Namespaces that a test adds here are gone after it."""
    made: list[str] = []
    yield made
    for name in made:
        await kube.delete(NAMESPACES, name)

    async def gone() -> bool:
        for name in made:
            try:
                await kube.get(NAMESPACES, name)
            except NotFound:
                continue
            return False
        return True

    await eventually(gone, seconds=60, what="the namespaces to go")


async def volume(kube: KubeClient, namespace: str) -> None:
    """The claim that Volcano's job names, bound to a volume of its own."""
    claim = {"namespace": namespace, "name": CLAIM}
    size, modes = {"storage": "1Mi"}, ["ReadWriteMany"]
    spec = {"capacity": size, "accessModes": modes, "hostPath": {"path": "/tmp"}, "claimRef": claim}
    await kube.create(VOLUMES, {"metadata": {"name": CLAIM}, "spec": spec})
    wanted = {"accessModes": modes, "storageClassName": "", "volumeName": CLAIM, "resources": {"requests": size}}
    await kube.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": CLAIM}, "spec": wanted}, namespace)


@pytest.mark.parametrize("name", ["kueue", "volcano", "kai"])
async def test_the_queues_and_jobs_of_each_example_run(
    devcluster: Cluster, kube: KubeClient, repository: Path, namespaces: list[str], name: str
) -> None:
    text, wanted = await migrated(repository, name)
    jobs = [one["metadata"] for one in wanted if one["kind"] == "TrainingJob"]
    for namespace in sorted({job["namespace"] for job in jobs}):
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        namespaces.append(namespace)
    if name == "volcano":
        await volume(kube, jobs[0]["namespace"])
    try:
        await run(devcluster, "kubectl", "apply", "-f", "-", text_in=text)
        for one in wanted:
            if one["kind"] == "Tenant":
                stored = (await kube.get(TENANTS, one["metadata"]["name"]))["spec"]
                caps = one["spec"].pop("caps", {})
                assert one["spec"].items() <= stored.items()
                assert caps.items() <= stored.get("caps", {}).items()
        for job in jobs:
            running = await reaches(kube, job["namespace"], job["name"], "Running", seconds=60)
            assert running["status"]["allocation"]["gpuType"] == "A100"
            assert len(running["status"]["workers"]) == running["spec"]["gpus"] // running["spec"].get(
                "gpusPerWorker", running["spec"]["gpus"]
            )
    finally:
        for job in jobs:
            await kube.delete(TRAINING_JOBS, job["name"], job["namespace"])
        for one in wanted:
            if one["kind"] == "Tenant":
                await kube.delete(TENANTS, one["metadata"]["name"])
        if name == "volcano":
            await kube.delete(VOLUMES, CLAIM)
