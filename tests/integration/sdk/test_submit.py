"""What `submit` creates on the real API server, and what it says when the API server refuses."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import kube_synergy
from kube_synergy import aio
from kube_synergy.live.explained import explained
from support.on_cluster.service_account import kubeconfig_of
from support.sdk import own_module
from support.waiting import eventually
from synergy_devcluster import Cluster
from synergy_kube import KubeClient, Resource
from synergy_kube.errors import NotFound
from synergy_kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]

OPTIONS: dict[str, Any] = {"image": "registry.example.com/none:1", "steps": 5, "spec": {"suspend": True}}


@pytest.fixture
def where(devcluster: Cluster, namespace: str) -> dict[str, Any]:
    return {"kubeconfig": str(devcluster.kubeconfig), "namespace": namespace}


async def names(kube: KubeClient, resource: Resource, namespace: str) -> set[str]:
    found = {item["metadata"]["name"] for item in (await kube.list(resource, namespace))["items"]}
    return found - {"kube-root-ca.crt"}


async def test_the_objects_are_those_of_the_manifests(kube: KubeClient, namespace: str, where: dict[str, Any]) -> None:
    options = {**OPTIONS, "name": "mine", "checkpoint_storage": "1Mi"}
    job = await aio.submit(own_module.doubled, args=[1.0], **where, **options)
    assert (job.namespace, job.name) == (namespace, "mine")
    created = await kube.get(TRAINING_JOBS, "mine", namespace)
    owner = {"apiVersion": "kube-synergy.dev/v1alpha1", "kind": "TrainingJob", "name": "mine"}
    wanted = kube_synergy.manifests(own_module.doubled, args=[1.0], **options)
    for resource, manifest in zip((TRAINING_JOBS, CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS), wanted, strict=True):
        found = await kube.get(resource, manifest["metadata"]["name"], namespace)
        assert found.get("data") == manifest.get("data")
        if resource != TRAINING_JOBS:
            assert found["metadata"]["ownerReferences"] == [{**owner, "uid": created["metadata"]["uid"]}]
    template = wanted[0]["spec"]["template"]["spec"]
    assert created["spec"]["template"]["spec"] == template
    await job.delete()

    async def gone() -> bool:
        owned = await names(kube, CONFIG_MAPS, namespace) | await names(kube, PERSISTENT_VOLUME_CLAIMS, namespace)
        return not owned and not await names(kube, TRAINING_JOBS, namespace)

    await eventually(gone, seconds=60, what="what the job owned to be deleted with it")
    with pytest.raises(kube_synergy.JobNotFoundError):
        await job.status()
    await job.delete()  # once more is no error


async def test_a_dry_run_creates_nothing(kube: KubeClient, namespace: str, where: dict[str, Any]) -> None:
    await aio.submit(own_module.doubled, args=[1.0], dry_run=True, checkpoint_storage="1Mi", **where, **OPTIONS)
    for resource in (TRAINING_JOBS, CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS):
        assert await names(kube, resource, namespace) == set()


async def test_a_job_is_held_and_let_go_on(where: dict[str, Any]) -> None:
    job = await asyncio.to_thread(kube_synergy.submit, own_module.doubled, args=[1.0], **where, **OPTIONS)
    again = await asyncio.to_thread(kube_synergy.job, job.name, **where)

    async def suspended() -> bool:
        return (await asyncio.to_thread(again.why)).reason == "Suspended"

    async def goes_on() -> bool:
        return not await suspended()

    await eventually(suspended, seconds=20, what="the job to be held from the start", every=0.1)
    await asyncio.to_thread(again.resume)
    await eventually(goes_on, seconds=20, what="the job to go on", every=0.1)
    await asyncio.to_thread(again.suspend)
    await eventually(suspended, seconds=20, what="the job to be held", every=0.1)
    assert await asyncio.to_thread(again.logs) == ""


async def test_a_name_that_is_taken(kube: KubeClient, namespace: str, where: dict[str, Any]) -> None:
    await aio.submit(own_module.doubled, args=[1.0], name="mine", **where, **OPTIONS)
    with pytest.raises(kube_synergy.NameTakenError, match='"mine" already exists; pass another name='):
        await aio.submit(own_module.doubled, args=[1.0], name="mine", **where, **OPTIONS)
    await kube.create(CONFIG_MAPS, {"metadata": {"name": "other-script"}}, namespace)
    with pytest.raises(kube_synergy.NameTakenError, match='configmaps "other-script" already exists'):
        await aio.submit(own_module.doubled, args=[1.0], name="other", **where, **OPTIONS)
    with pytest.raises(NotFound):
        await kube.get(TRAINING_JOBS, "other", namespace)


async def test_what_the_api_server_does_not_accept(where: dict[str, Any]) -> None:
    with pytest.raises(kube_synergy.InvalidJobError, match=r"metadata.name must be at most 50 characters"):
        await aio.submit(own_module.doubled, args=[1.0], name="x" * 51, **where, **OPTIONS)
    with pytest.raises(kube_synergy.InvalidJobError, match="gpusPerWorker must divide gpus"):
        await aio.submit(own_module.doubled, args=[1.0], gpus=3, **where, **{**OPTIONS, "spec": {"gpusPerWorker": 2}})
    with pytest.raises(kube_synergy.InvalidJobError, match=r'unknown field "spec.stepps"'):
        await aio.submit_manifest({"kind": "TrainingJob", "metadata": {"name": "x"}, "spec": {"stepps": 1}}, **where)


async def test_a_manifest_is_submitted_as_it_is(kube: KubeClient, namespace: str, where: dict[str, Any]) -> None:
    manifest, _ = kube_synergy.manifests(own_module.doubled, args=[1.0], name="by-yaml", **OPTIONS)
    manifest["metadata"]["namespace"] = namespace
    job = await aio.submit_manifest(manifest, kubeconfig=where["kubeconfig"], namespace="default")
    assert (job.namespace, (await job.status()).steps) == (namespace, 5)
    assert (await kube.get(TRAINING_JOBS, "by-yaml", namespace))["spec"]["steps"] == 5


async def test_a_namespace_that_is_not_there(where: dict[str, Any]) -> None:
    with pytest.raises(
        kube_synergy.InvalidJobError, match='namespace: namespaces "nowhere-at-all" not found; name one'
    ):
        await aio.submit(own_module.doubled, args=[1.0], **{**where, "namespace": "nowhere-at-all"}, **OPTIONS)


async def test_what_you_may_not_do(
    kube: KubeClient, devcluster: Cluster, namespace: str, where: dict[str, Any], tmp_path: Path
) -> None:
    rules = [{"apiGroups": ["kube-synergy.dev"], "resources": ["trainingjobs"], "verbs": ["create", "delete", "get"]}]
    async with kubeconfig_of(kube, devcluster.kubeconfig, rules, tmp_path) as limited:
        mine = {**where, "kubeconfig": str(limited)}
        with pytest.raises(kube_synergy.ForbiddenError, match=r'cannot create resource "configmaps".*ask an admin'):
            await aio.submit(own_module.doubled, args=[1.0], name="half", **mine, **OPTIONS)
        with pytest.raises(kube_synergy.JobNotFoundError):  # none is left without its program
            await aio.job("half", **where)
        job = await aio.submit_manifest(
            kube_synergy.manifests(own_module.doubled, args=[1.0], name="seen", **OPTIONS)[0], **mine
        )
        assert (await job.status()).phase in ("Pending", "Suspended")
        with pytest.raises(kube_synergy.ForbiddenError, match='cannot list resource "trainingjobs"'):
            await job.why()
        with pytest.raises(kube_synergy.ForbiddenError, match='cannot patch resource "trainingjobs"'):
            await job.resume()


@pytest.mark.parametrize("group", ["nobody.example.com", "apps"])
async def test_a_cluster_without_kube_synergy(kube: KubeClient, namespace: str, group: str) -> None:
    """What the API server answers of a kind that it does not know, in a group that it knows and in one that it does
    not."""
    unknown = Resource(group, "v1", "trainingjobs", "TrainingJob", namespaced=True)
    for question in (kube.get(unknown, "x", namespace), kube.create(unknown, {"metadata": {"name": "x"}}, namespace)):
        with pytest.raises(kube_synergy.NotInstalledError, match="install kube-synergy there"), explained():
            await question
