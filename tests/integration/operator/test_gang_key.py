"""The key of a job's gangs: a Secret that the operator makes, cannot read, and leaves to go with its job."""

import base64
from pathlib import Path
from typing import Any

import pytest

import synergy_devcluster
from support.operator.stage import NODES, Stage
from support.programs import run
from support.waiting import eventually
from synergy_api.names import gang_secret_name
from synergy_devcluster.gpu_plugin.gpu_types import gpu_type
from synergy_devcluster.node.node import PAUSE_IMAGE
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient, NotFound
from synergy_kube.errors import ApiError
from synergy_kube.resources import SECRETS, TRAINING_JOBS

pytestmark = pytest.mark.integration


async def start_gang(stage: Stage, name: str = "job", run: int = 1) -> dict[str, Any]:
    """Two workers of a job, made; and the Secret that they are given."""
    await stage.submit(name, gpus=2, gpusPerWorker=1)
    await stage.phase("Queued", name=name)
    await stage.grant((NODES[0], 2, 6000, 16), run=run, name=name)

    async def two() -> bool:
        return len([pod for pod in await stage.pods(run) if pod["metadata"]["name"].startswith(f"{name}-")]) == 2

    await eventually(two, seconds=20, what="two pods", every=0.05)
    uid = (await stage.job(name))["metadata"]["uid"]
    return await stage.kube.get(SECRETS, gang_secret_name(name, uid), stage.namespace)


async def test_each_job_has_a_key_of_its_own_that_its_pods_are_given_and_that_goes_with_it(
    stage: Stage, devcluster: synergy_devcluster.Cluster
) -> None:
    one, other = await start_gang(stage, "one"), await start_gang(stage, "other")
    keys = [base64.b64decode(secret["data"]["gang-key"]) for secret in (one, other)]
    assert [len(key) for key in keys] == [64, 64]
    assert keys[0] != keys[1]
    assert one["immutable"] is True
    for pod in await stage.pods():
        job = pod["metadata"]["labels"]["kube-synergy.dev/job"]
        sources = next(v for v in pod["spec"]["volumes"] if v["name"] == "kube-synergy-token")["projected"]["sources"]
        assert sources[1]["secret"]["name"] == {"one": one, "other": other}[job]["metadata"]["name"]
        for key in keys:
            assert key.decode() not in str(pod), "who may read pods does not read the key"
    described = await run(devcluster, "kubectl", "-n", stage.namespace, "get", "pods,tj,events", "-o", "yaml")
    assert keys[0].decode() not in described

    await stage.kube.delete(TRAINING_JOBS, "one", stage.namespace)

    async def gone() -> bool:
        try:
            await stage.kube.get(SECRETS, one["metadata"]["name"], stage.namespace)
        except NotFound:
            return True
        return False

    await eventually(gone, seconds=60, what="the Secret to go with its job")


async def test_a_real_kubelet_puts_one_key_beside_the_tokens_of_all_workers(
    stage: Stage, devcluster: synergy_devcluster.Cluster
) -> None:
    """Volumes are there before the images are: the workers need not run."""
    product = gpu_type("A100").product
    pod = {"spec": {"containers": [{"name": "train", "image": PAUSE_IMAGE, "command": ["/pause"]}]}}
    await stage.submit(gpus=2, gpusPerWorker=1, gpuTypes=[product], template=pod)
    await stage.phase("Queued")
    await stage.grant((REAL_NODE, 2, 200, 1), gpuType=product)
    workers = await stage.bind(2)
    folders = [
        f"pods/{worker['metadata']['uid']}/volumes/kubernetes.io~projected/kube-synergy-token" for worker in workers
    ]

    kubelet = devcluster.component("kubelet").process
    assert kubelet is not None
    kubelets = Path(f"/proc/{kubelet.pid}/root/var/lib/kubelet")  # as seen in the node's own mount namespace

    async def mounted() -> list[str]:
        files = [kubelets / folder / "gang-key" for folder in folders]
        return [file.read_text() for file in files] if all(file.exists() for file in files) else []

    keys = await eventually(mounted, seconds=60, what="both workers to have the key")
    secret = (await stage.kube.list(SECRETS, stage.namespace))["items"]
    (drawn,) = [base64.b64decode(item["data"]["gang-key"]).decode() for item in secret if "gang-key" in item["data"]]
    assert keys == [drawn, drawn]


async def test_the_operator_may_make_secrets_and_neither_read_nor_change_nor_delete_one(
    stage: Stage, least_rights: Path
) -> None:
    secret = await start_gang(stage)
    name = secret["metadata"]["name"]
    async with await KubeClient.connect(kubeconfig=str(least_rights)) as operator:
        for attempt in (
            operator.get(SECRETS, name, stage.namespace),
            operator.list(SECRETS, stage.namespace),
            operator.merge_patch(SECRETS, name, {"immutable": True}, stage.namespace),
            operator.delete(SECRETS, name, stage.namespace),
        ):
            with pytest.raises(ApiError, match="forbidden"):
                await attempt
