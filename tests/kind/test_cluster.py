"""kube-synergy on a real kind cluster: its nodes, GPUs, volumes and network, and that nothing leaves the machine."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.on_cluster.jobs import reaches, restricted_template, submit
from support.on_cluster.on_kind import OnKind
from support.waiting import eventually
from synergy_cli.demo.kind import LABEL_COUNT
from synergy_devcluster.gpu_plugin.devices import gpu_uuids
from synergy_devcluster.gpu_plugin.gpu_types import gpu_type, node_labels
from synergy_kube import KubeClient
from synergy_kube.resources import DEPLOYMENTS, NODES, PERSISTENT_VOLUME_CLAIMS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

CONTROL_PLANE = "kube-synergy-control-plane"
WORKER = "kube-synergy-worker"


async def test_the_nodes_are_those_of_the_configuration(repository: Path, kube: KubeClient) -> None:
    nodes = {node["metadata"]["name"]: node for node in (await kube.list(NODES))["items"]}
    assert set(nodes) == {CONTROL_PLANE, WORKER}
    config = yaml.safe_load((repository / "kind-config.yaml").read_text())
    (wanted,) = [node["labels"] for node in config["nodes"] if node["role"] == "worker"]
    worker = nodes[WORKER]
    assert wanted.items() <= worker["metadata"]["labels"].items()
    assert worker["status"]["allocatable"]["nvidia.com/gpu"] == wanted[LABEL_COUNT]
    assert "nvidia.com/gpu" not in nodes[CONTROL_PLANE]["status"]["allocatable"]
    # a devcluster labels its node alike
    assert wanted == node_labels(gpu_type("A100"), int(wanted[LABEL_COUNT]), 1)


async def test_the_chart_runs_with_the_kube_scheduler_that_the_nodes_hold(kube: KubeClient, on_kind: OnKind) -> None:
    deployment = await kube.get(DEPLOYMENTS, "kube-synergy-scheduler", "kube-synergy")
    (scheduler,) = deployment["spec"]["template"]["spec"]["containers"]
    assert scheduler["image"] == f"registry.k8s.io/kube-scheduler:{await kube.server_version()}"
    assert "kind create cluster --config kind-config.yaml" in on_kind.told


async def test_a_job_gets_the_daemon_sets_gpus_and_a_volume(kube: KubeClient, namespace: str, on_kind: OnKind) -> None:
    claim = {
        "metadata": {"name": "checkpoints"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}},
    }
    await kube.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace)
    script = (
        "import os, pathlib; pathlib.Path('/checkpoints/mine').write_text('there');"
        "print('mine:', os.environ['NVIDIA_VISIBLE_DEVICES'])"
    )
    volume = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}
    template = restricted_template(["python3", "-c", script], volumes=[volume])
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    await submit(kube, namespace, "both", gpus=2, steps=1, profile={"mode": "Skip"}, template=template)
    await reaches(kube, namespace, "both", "Succeeded", seconds=180)
    assert f"mine: {','.join(gpu_uuids(WORKER, 2))}" in on_kind.kubectl("-n", namespace, "logs", "both-1-0")

    path = ["get", "pv", "-o", f"jsonpath={{.items[?(@.spec.claimRef.namespace=='{namespace}')].spec.hostPath.path}}"]
    folder = on_kind.kubectl(*path)
    assert on_kind.on_node(WORKER, "cat", f"{folder}/mine") == "there"
    on_kind.kubectl("-n", namespace, "delete", "trainingjob", "both", "--wait")
    on_kind.kubectl("-n", namespace, "delete", "pvc", "checkpoints", "--wait", "--timeout=60s")

    async def gone() -> bool:
        return folder not in on_kind.on_node(WORKER, "ls", "-d", "/var/local-volumes/*")

    await eventually(gone, seconds=30, what="the volume's folder to be removed")


async def test_the_nodes_reach_each_others_pods(namespace: str, on_kind: OnKind) -> None:
    """A pod of the worker asks the DNS servers, whose pods are on the control plane; a node asks the other's pod."""
    dns = ["-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].spec.nodeName}"]
    assert set(on_kind.kubectl(*dns).split()) == {CONTROL_PLANE}
    server = _pod("server", WORKER, ["python3", "-m", "http.server", "8000", "--directory", "/examples"])
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server"},
        "spec": {"selector": {"name": "server"}, "ports": [{"port": 8000}]},
    }
    on_kind.kubectl("-n", namespace, "apply", "-f", "-", text_in=yaml.safe_dump_all([server, service]))
    on_kind.kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod/server", "--timeout=60s")
    ask = "import urllib.request; print(urllib.request.urlopen('http://server:8000/common.py', timeout=20).status)"
    client = _pod("client", WORKER, ["python3", "-c", ask])
    on_kind.kubectl("-n", namespace, "apply", "-f", "-", text_in=yaml.safe_dump(client))
    on_kind.kubectl("-n", namespace, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/client", "--timeout=60s")
    assert on_kind.kubectl("-n", namespace, "logs", "client").strip() == "200"
    address = on_kind.kubectl("-n", namespace, "get", "pod", "server", "-o", "jsonpath={.status.podIP}")
    assert (
        on_kind.on_node(CONTROL_PLANE, f"timeout 20 bash -c '</dev/tcp/{address}/8000' && echo open").strip() == "open"
    )


def test_nothing_leaves_the_machine(on_kind: OnKind) -> None:
    """What a node sends outward is refused at once, and no name outside the cluster is known."""
    begun = time.monotonic()
    assert "refused" in on_kind.on_node(WORKER, "timeout 20 bash -c '</dev/tcp/192.0.2.7/80'")
    assert time.monotonic() - begun < 10
    assert on_kind.on_node(WORKER, "timeout 30 getent hosts example.com") == ""


@pytest.mark.parametrize(
    "mistake",
    [
        ("role: worker", "role: werker", '"werker" is not a valid node role'),
        ("labels:", "lables:", "field lables not found"),
        ("v1alpha4", "v1alpha9", "unknown apiVersion"),
    ],
)
def test_kind_refuses_a_configuration_with_a_mistake(
    repository: Path, tmp_path: Path, on_kind: OnKind, mistake: tuple[str, str, str]
) -> None:
    right, wrong, words = mistake
    mistaken = tmp_path / "mistaken.yaml"
    mistaken.write_text((repository / "kind-config.yaml").read_text().replace(right, wrong))
    tools = on_kind.tools
    command = [tools.program("kind"), "create", "cluster", "--config", str(mistaken), "--name", "mistaken"]
    done = subprocess.run(command, env=dict(tools.environment), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert words in done.stderr


def _pod(name: str, node: str, command: list[str]) -> dict[str, Any]:
    template = restricted_template(command, nodeName=node, restartPolicy="Never")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"name": name}}, **template}
