"""JobSets, PyTorchJobs and TrainJobs with the label. Their controllers are not here:
`support.on_cluster.job_controllers` plays their part, which makes pods while an object is not suspended.
"""

from functools import partial
from typing import Any

import pytest

from support.on_cluster.job_controllers import JOB_SETS, PYTORCH_JOBS, TRAIN_JOBS, controller, defined, served
from support.on_cluster.jobs import appears, reaches
from support.waiting import eventually
from synergy_api import names
from synergy_kube import KubeClient, Resource
from synergy_kube.resources import PODS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("scheduling")]

Json = dict[str, Any]
SELECTOR = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}
MARKS = {"kwok.kube-synergy.dev/run-seconds": "6"}
LONG_MARKS = {"kwok.kube-synergy.dev/run-seconds": "20"}
"""Of what already runs when it is found: it must not be done by then."""
RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}


def template(marks: Json = MARKS) -> Json:
    container = {"name": "pytorch", "image": "example/train:1", "resources": RESOURCES}
    pod = {"restartPolicy": "Never", "nodeSelector": SELECTOR, "containers": [container]}
    return {"metadata": {"annotations": marks}, "spec": pod}


SPECS: dict[str, tuple[Resource, Json]] = {
    "JobSet": (
        JOB_SETS,
        {
            "suspend": False,
            "replicatedJobs": [
                {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 1, "template": template(LONG_MARKS)}}}
            ],
        },
    ),
    "PyTorchJob": (
        PYTORCH_JOBS,
        {
            "runPolicy": {"suspend": True},
            "pytorchReplicaSpecs": {"Master": {"template": template()}, "Worker": {"template": template()}},
        },
    ),
    "TrainJob": (
        TRAIN_JOBS,
        {
            "suspend": True,
            "trainer": {"numNodes": 2, "image": "example/train:1", "resourcesPerNode": RESOURCES},
            "podTemplateOverrides": [
                {
                    "targetJobs": [{"name": "node"}],
                    "metadata": {"annotations": MARKS},
                    "spec": {"nodeSelector": SELECTOR},
                }
            ],
        },
    ),
}


@pytest.mark.parametrize("kind", SPECS)
async def test_an_object_is_followed_once_its_kind_is_there(kube: KubeClient, namespace: str, kind: str) -> None:
    resource, spec = SPECS[kind]
    metadata = {
        "name": "train",
        "labels": {names.LABEL_MANAGED: "true"},
        "annotations": {names.ANNOTATION_PREEMPTIBLE: "true"},
    }
    async with defined(kube, resource):
        create = partial(kube.create, resource, {"metadata": metadata, "spec": spec}, namespace)
        await eventually(partial(served, create), seconds=60, what=f"{kind} to be served")
        async with controller(kube, resource, namespace, "train"):
            job = f"{kind.lower()}-train"
            await appears(kube, namespace, job, seconds=60)
            running = await reaches(kube, namespace, job, "Running", seconds=60)
            assert running["spec"]["gpus"] == 2
            planned = {share["node"]: share["gpus"] for share in running["status"]["allocation"]["workers"]}
            pods = (await kube.list(PODS, namespace, label_selector=f"{names.LABEL_RUN}=1"))["items"]
            found: dict[str, int] = {}
            for pod in pods:
                found[pod["spec"]["nodeName"]] = found.get(pod["spec"]["nodeName"], 0) + 1
            assert found == planned
            done = await reaches(kube, namespace, job, "Succeeded", seconds=60)
            assert done["status"]["service"]["last"]["reason"].startswith("OwnerSucceeded")

            async def shown() -> bool:
                item = await served(partial(kube.get, resource, "train", namespace))
                return item is not None and item["metadata"]["annotations"].get(names.ANNOTATION_STATUS) == "Succeeded"

            await eventually(shown, seconds=60, what="the annotation")
