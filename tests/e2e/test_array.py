"""An array on a real kubelet: each of its jobs finds its own index in its environment and its arguments."""

import asyncio

import pytest

import synergy_devcluster
from support.on_cluster.jobs import logs, reaches, restricted_template, submit
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.e2e

TRAIN = "import os, sys, time; print('index', os.environ['SYNERGY_ARRAY_INDEX'], sys.argv[1]); time.sleep(5)"


async def test_each_job_of_an_array_has_its_index(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, product: None, namespace: str
) -> None:
    template = restricted_template(["python3", "-c", TRAIN])
    template["spec"]["containers"][0]["args"] = ["--lr-$(SYNERGY_ARRAY_INDEX)"]
    spec = {"gpus": 1, "steps": 1, "profile": {"mode": "Skip"}, "template": template}
    await submit(kube, namespace, "sweep", **spec, array={"count": 2, "maxParallel": 1})

    async def made() -> bool:
        jobs = (await kube.list(TRAINING_JOBS, namespace))["items"]
        return "sweep-0" in {one["metadata"]["name"] for one in jobs}

    await eventually(made, seconds=20, what="the first job of the array")
    await reaches(kube, namespace, "sweep-0", "Running", seconds=60)
    await kube.merge_patch(TRAINING_JOBS, "sweep", {"spec": {"weight": 2}}, namespace)

    async def follows() -> bool:
        return bool((await kube.get(TRAINING_JOBS, "sweep-0", namespace))["spec"].get("weight") == 2)

    await eventually(follows, seconds=20, what="the running job to follow its array")
    found = await reaches(kube, namespace, "sweep", "Succeeded", seconds=60)
    assert found["status"]["array"]["succeededIndexes"] == "0-1"

    async def told() -> bool:
        lines = [await asyncio.to_thread(logs, devcluster, namespace, f"sweep-{i}-1-0") for i in (0, 1)]
        return ["index 0 --lr-0" in lines[0], "index 1 --lr-1" in lines[1]] == [True, True]

    await eventually(told, seconds=20, what="each worker to print its index")
