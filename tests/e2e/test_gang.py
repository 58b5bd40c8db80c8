"""A job of two workers: what they find in their environment, and that they find each other."""

import json

import pytest

import synergy_devcluster
from support.on_cluster.jobs import logs, reaches, restricted_template, submit
from synergy_api.names import LABEL_JOB
from synergy_kube import KubeClient
from synergy_kube.resources import SERVICES, TRAINING_JOBS

pytestmark = pytest.mark.e2e

SCRIPT = """
import hashlib, json, os, socket, time
names = ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE")
found = {name: os.environ[name] for name in names} | {"gpus": os.environ["NVIDIA_VISIBLE_DEVICES"].split(",")}
with open(os.environ["SYNERGY_GANG_KEY_FILE"], "rb") as file:
    found["key"] = hashlib.sha256(file.read()).hexdigest()
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(("", master[1])) as server:
        server.settimeout(60)
        peer, _ = server.accept()
        found["heard"] = peer.recv(100).decode()
        peer.sendall(b"hello from 0")
else:
    for attempt in range(200):
        try:
            peer = socket.create_connection(master, timeout=10)
            break
        except OSError:
            time.sleep(0.2)
    peer.sendall(b"hello from 1")
    found["heard"] = peer.recv(100).decode()
print(json.dumps(found))
"""


async def somebody_has_spoilt_its_service(kube: KubeClient, namespace: str) -> None:
    """The job's own Service, by which its workers would not find each other."""
    job = await kube.get(TRAINING_JOBS, "pair", namespace)
    owner = {"apiVersion": job["apiVersion"], "kind": "TrainingJob", "name": "pair", "controller": True}
    metadata = {"name": "tj-pair", "ownerReferences": [{**owner, "uid": job["metadata"]["uid"]}]}
    await kube.create(
        SERVICES, {"metadata": metadata, "spec": {"clusterIP": "None", "selector": {LABEL_JOB: "pair"}}}, namespace
    )


@pytest.mark.timeout(180)
async def test_two_workers_see_their_ranks_and_talk_by_name(
    kube: KubeClient, namespace: str, pools: None, devcluster: synergy_devcluster.Cluster
) -> None:
    await submit(
        kube,
        namespace,
        "pair",
        gpus=2,
        gpusPerWorker=1,
        steps=1,
        gpuTypes=["A100"],
        profile={"mode": "Skip"},
        template=restricted_template(["python3", "-c", SCRIPT]),
        suspend=True,
    )
    await somebody_has_spoilt_its_service(kube, namespace)
    await kube.merge_patch(TRAINING_JOBS, "pair", {"spec": {"suspend": False}}, namespace)
    job = await reaches(kube, namespace, "pair", "Succeeded", "Failed", seconds=120)
    assert job["status"]["phase"] == "Succeeded", job["status"]
    service = await kube.get(SERVICES, "tj-pair", namespace)
    assert service["spec"]["publishNotReadyAddresses"], "the operator has mended it"
    run = job["status"]["service"]["run"]
    found = [json.loads(logs(devcluster, namespace, f"pair-{run}-{rank}")) for rank in (0, 1)]
    assert [item["RANK"] for item in found] == ["0", "1"]
    assert [item["PET_NODE_RANK"] for item in found] == ["0", "1"]
    assert len({item["key"] for item in found}) == 1, "both are given the same key"
    assert {item["WORLD_SIZE"] for item in found} == {item["PET_NNODES"] for item in found} == {"2"}
    assert {item["PET_NPROC_PER_NODE"] for item in found} == {"1"}
    assert {item["MASTER_ADDR"] for item in found} == {f"pair-{run}-0.tj-pair.{namespace}.svc"}
    assert [item["heard"] for item in found] == ["hello from 1", "hello from 0"]
    assert not set(found[0]["gpus"]) & set(found[1]["gpus"]), "each worker has a GPU of its own"
