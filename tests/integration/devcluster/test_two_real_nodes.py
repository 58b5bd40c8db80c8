"""Two kubelets on one machine: each with its GPUs and its part of the machine, pods on both reach each other."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.devcluster.conftest import Place
from synergy_devcluster.programs.processes import wait_for

pytestmark = pytest.mark.integration
NODES = ("ksdev-real", "ksdev-real-2")


@pytest.fixture(scope="module")
def pair(place: Place, image: Path) -> Iterator[Place]:
    """A cluster with two real nodes, which have the test image."""
    assert place.devcluster("down").returncode == 0
    # as Docker leaves it on a machine
    assert place.run("iptables", "-P", "FORWARD", "DROP").returncode == 0
    up = place.devcluster("up", "--real-nodes", "2", "--gpus", "1")
    assert up.returncode == 0, up.stderr
    assert place.devcluster("load-image", str(image)).returncode == 0
    yield place
    assert place.devcluster("down").returncode == 0
    assert place.run("iptables", "-S", "FORWARD").stdout == "-P FORWARD DROP\n"
    assert place.run("iptables", "-P", "FORWARD", "ACCEPT").returncode == 0


def test_together_they_offer_what_the_machine_has(pair: Place) -> None:
    offered = [pair.get("node", name)["status"]["allocatable"] for name in NODES]
    assert [item["nvidia.com/gpu"] for item in offered] == ["1", "1"]
    cpus = [int(item["cpu"][:-1]) if item["cpu"].endswith("m") else 1000 * int(item["cpu"]) for item in offered]
    assert sum(cpus) == 1000 * (os.cpu_count() or 0)


def test_a_job_over_both_nodes_talks_by_name_and_shares_a_claim(pair: Place) -> None:
    service = {
        "clusterIP": "None",
        "selector": {"app": "w"},
        "ports": [{"port": 8080}],
        "publishNotReadyAddresses": True,
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for kind, spec in (("Service", service), ("PersistentVolumeClaim", claim)):
        manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}
        pair.kubectl("create", "-f", "-", manifest=manifest)
    container = {
        "command": ["sh", "-c", "hostname > /v/$(hostname) && cd /v && exec python3 -m http.server 8080"],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "w"}}]
    for rank, node in enumerate(NODES):
        where = {"nodeSelector": {"kubernetes.io/hostname": node}, "hostname": f"w{rank}", "subdomain": "w"}
        pair.pod(f"w{rank}", container=container, volumes=volumes, **where)
        pair.kubectl("label", "pod", f"w{rank}", "app=w")
    for rank, node in enumerate(NODES):
        assert pair.wait_phase(f"w{rank}", "Running")["spec"]["nodeName"] == node

    def hears(rank: int, peer: int) -> bool:
        fetch = (
            f"import urllib.request as r; print(r.urlopen('http://w{peer}.w:8080/w{rank}', timeout=2).read().decode())"
        )
        guarded = f"try:\n {fetch}\nexcept OSError as error: print(error)"
        return pair.kubectl("exec", f"w{rank}", "--", "python3", "-c", guarded).strip() == f"w{rank}"

    for rank, peer in ((0, 1), (1, 0)):
        assert wait_for(lambda rank=rank, peer=peer: hears(rank, peer), 15, 0.3)


def test_pods_of_one_node_reach_each_other_through_a_service(pair: Place) -> None:
    pair.kubectl("expose", "pod", "w0", "--name=served", "--port=80", "--target-port=8080")
    fetch = "import urllib.request as r; print(r.urlopen('http://served/w0', timeout=2).read().decode())"
    guarded = f"try:\n {fetch}\nexcept OSError as error: print(error)"
    for client in ("w0", "w1"):
        call = ["exec", client, "--", "python3", "-c", guarded]
        assert wait_for(lambda call=call: pair.kubectl(*call).strip() == "w0", 15, 0.3), pair.kubectl(*call)


def test_one_node_lost_is_one_node_not_ready(pair: Place) -> None:
    listed = json.loads(pair.devcluster("gpu", "list", "--json").stdout)["gpus"]
    second = next(item["uuid"] for item in listed if item["node"] == NODES[1])
    assert pair.devcluster("gpu", "unhealthy", second).returncode == 0

    def offered(node: str) -> str:
        return str(pair.get("node", node)["status"]["allocatable"]["nvidia.com/gpu"])

    assert wait_for(lambda: offered(NODES[1]) == "0", 10, 0.2)
    assert offered(NODES[0]) == "1"
    assert pair.devcluster("component", "kill", "kubelet-2").returncode == 0
    told = json.loads(pair.devcluster("status", "--json").stdout)
    assert [item["name"] for item in told["components"] if not item["alive"]] == ["kubelet-2"]
