"""What pods and nodes of a devcluster do: GPUs, volumes, names, resizes, fake nodes, and no way out."""

import json
from collections.abc import Iterator

import pytest

from integration.devcluster.conftest import UP, Place
from synergy_devcluster.programs.processes import wait_for
from synergy_devcluster.real_nodes import REAL_NODE

pytestmark = pytest.mark.integration
ONE_GPU = {"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "300m", "memory": "64Mi"}}}
RESIZED = {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "500m", "memory": "128Mi"}}


@pytest.fixture(autouse=True)
def no_pods_left(cluster: Place) -> Iterator[None]:
    """Delete every pod and claim of the test."""
    yield
    cluster.kubectl("delete", "pod,pvc,service", "--all", "--grace-period=1", "--wait=true", "-n", "default")


def gpus(place: Place) -> str:
    """Return the real node's allocatable GPUs."""
    return str(place.get("node", REAL_NODE)["status"]["allocatable"]["nvidia.com/gpu"])


def uuids(place: Place) -> dict[str, bool]:
    """Return the real node's GPUs and whether they are healthy."""
    listed = json.loads(place.devcluster("gpu", "list", "--json").stdout)["gpus"]
    return {item["uuid"]: item["healthy"] for item in listed}


def test_the_real_node_is_a_gpu_node(cluster: Place) -> None:
    labels = cluster.get("node", REAL_NODE)["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert labels["nvidia.com/gpu.count"] == "2"
    assert gpus(cluster) == "2"


def test_a_pod_sees_the_gpu_it_was_given(cluster: Place) -> None:
    cluster.pod("with-gpu", container=ONE_GPU)
    cluster.wait_phase("with-gpu", "Running")
    seen = cluster.kubectl("exec", "with-gpu", "--", "printenv", "NVIDIA_VISIBLE_DEVICES").strip()
    assert seen in uuids(cluster)


def test_a_pod_that_asks_for_more_gpus_than_there_are_waits(cluster: Place) -> None:
    cluster.pod(
        "too-many",
        container={"resources": {"limits": {"nvidia.com/gpu": 3}}},
    )

    def told() -> bool:
        conditions = cluster.get("pod", "too-many")["status"].get("conditions", [])
        return any("Insufficient nvidia.com/gpu" in item.get("message", "") for item in conditions)

    assert wait_for(told, 10, 0.2)


def test_an_unhealthy_gpu_leaves_the_nodes_allocatable_and_comes_back(cluster: Place) -> None:
    first, second = uuids(cluster)
    assert cluster.devcluster("gpu", "unhealthy", first).returncode == 0
    assert wait_for(lambda: gpus(cluster) == "1", 10, 0.2)
    assert uuids(cluster) == {first: False, second: True}
    cluster.pod("on-the-other", container=ONE_GPU)
    cluster.wait_phase("on-the-other", "Running")
    assert cluster.kubectl("exec", "on-the-other", "--", "printenv", "NVIDIA_VISIBLE_DEVICES").strip() == second
    assert cluster.devcluster("gpu", "healthy", first).returncode == 0
    assert wait_for(lambda: gpus(cluster) == "2", 10, 0.2)


def test_an_unknown_gpu_is_refused(cluster: Place) -> None:
    refused = cluster.devcluster("gpu", "unhealthy", "GPU-0")
    assert refused.returncode == 2
    assert "no GPU 'GPU-0'" in refused.stderr


def test_pods_and_gpus_outlive_a_crash_of_kubelet_and_containerd(cluster: Place) -> None:
    cluster.pod("survivor", container=ONE_GPU)
    before = cluster.wait_phase("survivor", "Running")["status"]["containerStatuses"][0]
    log = cluster.paths.logs / "gpu-plugin.log"
    earlier = log.read_text().count("registered")
    crash(cluster, "kubelet")
    # nobody starts a kubelet again that ends because it comes up while containerd is away
    assert wait_for(lambda: log.read_text().count("registered") > earlier, 60, 0.2)
    crash(cluster, "containerd")
    assert wait_for(lambda: gpus(cluster) == "2" and answers(cluster, "survivor"), 60, 0.5)
    after = cluster.get("pod", "survivor")["status"]["containerStatuses"][0]
    assert (after["containerID"], after["restartCount"]) == (before["containerID"], 0)


def crash(cluster: Place, component: str) -> None:
    """End it as a crash would, and start it again."""
    for action in ("kill", "start"):
        assert cluster.devcluster("component", action, component).returncode == 0


def answers(cluster: Place, pod: str) -> bool:
    """A kubelet that has just started may not know its pods yet."""
    try:
        return cluster.kubectl("exec", pod, "--", "true") == ""
    except AssertionError:
        return False


def test_a_claim_binds_at_once_is_writable_for_any_user_and_its_volume_comes_back_empty(cluster: Place) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    cluster.kubectl("create", "-f", "-", manifest=claim)
    assert wait_for(lambda: cluster.get("pvc", "claim")["status"]["phase"] == "Bound", 5, 0.1)
    volume = cluster.get("pvc", "claim")["spec"]["volumeName"]
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}], "command": ["sh", "-c", "id -u > /v/user"]}
    cluster.pod("writer", container=mounts, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}])
    cluster.wait_phase("writer", "Succeeded")
    folder = cluster.paths.volumes / volume
    assert (folder / "user").read_text() == "10001\n"
    cluster.kubectl("delete", "pod/writer", "pvc/claim")
    assert wait_for(lambda: cluster.get("pv", volume).get("status", {}).get("phase") == "Available", 15, 0.2)
    assert list(folder.iterdir()) == []


def test_pods_find_each_other_by_name_and_through_services(cluster: Place) -> None:
    serve = {"command": ["python3", "-m", "http.server", "8080"], "ports": [{"containerPort": 8080}]}
    cluster.pod("server", container=serve)
    cluster.kubectl("label", "pod", "server", "app=server")
    cluster.kubectl("expose", "pod", "server", "--port=80", "--target-port=8080")
    cluster.pod("client")
    cluster.wait_phase("server", "Running")
    cluster.wait_phase("client", "Running")
    fetch = "import urllib.request as r; print(r.urlopen('http://server.default.svc.cluster.local', timeout=2).status)"

    def fetched() -> bool:
        answer = cluster.kubectl(
            "exec", "client", "--", "python3", "-c", f"try:\n {fetch}\nexcept OSError as e: print(e)"
        )
        return answer == "200\n"

    assert wait_for(fetched, 15, 0.5)


def test_nothing_leaves_the_machine(cluster: Place) -> None:
    """Neither a pod, nor a call to a service address nobody serves, nor one to a fake pod reaches the way out."""
    cluster.pod("prisoner")
    cluster.wait_phase("prisoner", "Running")

    def sent() -> int:
        return int(cluster.run("cat", "/proc/net/dev").stdout.split("out0:")[1].split()[8])

    before = sent()
    call = "import socket; socket.setdefaulttimeout(1); print(socket.socket().connect_ex(('{}', 80)))"
    for target in ("198.51.100.1", "203.0.113.9"):
        answer = cluster.kubectl("exec", "prisoner", "--", "python3", "-c", call.format(target)).strip()
        assert answer == "111", "refused at once, not swallowed"
    for target in ("10.96.77.77", "10.244.130.1"):
        assert cluster.run("python3", "-c", call.format(target)).stdout.strip() != "0"
    lookup = "import socket\ntry: socket.gethostbyname('example.com')\nexcept OSError: print('unknown')"
    assert cluster.kubectl("exec", "prisoner", "--", "python3", "-c", lookup) == "unknown\n"
    assert sent() == before
    assert cluster.run("python3", "-c", call.format("198.51.100.1")).stdout.strip() != "0"
    assert sent() > before, "the counter does count what leaves"


def test_the_real_nodes_pods_are_resized_in_place(cluster: Place) -> None:
    cluster.pod("resized", container={"resources": {"limits": {"cpu": "300m", "memory": "64Mi"}}})
    cluster.wait_phase("resized", "Running")
    quota = ["exec", "resized", "--", "cat", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"]
    assert cluster.kubectl(*quota) == "30000\n"
    patch = json.dumps({"spec": {"containers": [{"name": "c", "resources": RESIZED}]}})
    cluster.kubectl("patch", "pod", "resized", "--subresource=resize", f"--patch={patch}")
    assert wait_for(lambda: cluster.kubectl(*quota) == "50000\n", 10, 0.2)
    assert cluster.get("pod", "resized")["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("42", "Failed")])
def test_a_fake_pod_ends_after_its_time_with_its_exit_code(cluster: Place, code: str, phase: str) -> None:
    told = {"run-seconds": "2", "exit-code": code, "message": "as asked"}
    annotations = {f"kwok.kube-synergy.dev/{name}": value for name, value in told.items()}
    cluster.pod("fake", annotations=annotations, nodeSelector={"type": "kwok"}, container=ONE_GPU)
    cluster.wait_phase("fake", "Running")
    ended = cluster.wait_phase("fake", phase)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["message"]) == (int(code), "as asked")
    assert ended["finishedAt"] > ended["startedAt"]


def test_a_fake_pod_runs_until_deleted_and_is_resized(cluster: Place) -> None:
    cluster.pod("fake", nodeSelector={"type": "kwok"}, container=ONE_GPU)
    cluster.wait_phase("fake", "Running")
    patch = json.dumps({"spec": {"containers": [{"name": "c", "resources": RESIZED}]}})
    cluster.kubectl("patch", "pod", "fake", "--subresource=resize", f"--patch={patch}")

    def actual() -> dict[str, str]:
        status = cluster.get("pod", "fake")["status"]["containerStatuses"][0]
        return {**status["resources"]["limits"], "running": str("running" in status["state"])}

    wanted = {"cpu": "500m", "memory": "128Mi", "nvidia.com/gpu": "1", "running": "True"}
    assert wait_for(lambda: actual() == wanted, 10, 0.2), actual()
    cluster.kubectl("delete", "pod", "fake", "--timeout=10s")
    assert cluster.get("pod", "fake") == {}


def test_a_fake_pod_takes_its_time_to_stop(cluster: Place) -> None:
    annotations = {"kwok.kube-synergy.dev/stop-seconds": "3"}
    cluster.pod("slow", annotations=annotations, nodeSelector={"type": "kwok"}, terminationGracePeriodSeconds=30)
    cluster.wait_phase("slow", "Running")
    cluster.kubectl("delete", "pod", "slow", "--wait=false")
    assert cluster.get("pod", "slow")["metadata"]["deletionTimestamp"]
    assert wait_for(lambda: cluster.get("pod", "slow") == {}, 10, 0.2)


def test_a_fake_node_fails_and_recovers_on_command(cluster: Place) -> None:
    def ready(node: str) -> str:
        conditions = cluster.get("node", node)["status"]["conditions"]
        return next(str(item["status"]) for item in conditions if item["type"] == "Ready")

    cluster.kubectl("annotate", "node", "fake-t4-000", "kwok.kube-synergy.dev/fail=true")
    assert wait_for(lambda: ready("fake-t4-000") == "False", 10, 0.2)
    assert ready("fake-v100-000") == "True"
    cluster.kubectl("annotate", "node", "fake-t4-000", "kwok.kube-synergy.dev/fail-")
    assert wait_for(lambda: ready("fake-t4-000") == "True", 10, 0.2)


def test_nodes_are_added_to_a_running_cluster(cluster: Place) -> None:
    assert cluster.devcluster("add-nodes", "K80=2x4:cpu=16").returncode == 0
    allocatable = cluster.get("node", "fake-k80-001")["status"]["allocatable"]
    assert (allocatable["nvidia.com/gpu"], allocatable["cpu"]) == ("4", "16")
    assert wait_for(lambda: cluster.devcluster("status").returncode == 0, 10, 0.3)
    cluster.kubectl("delete", "node", "fake-k80-000", "fake-k80-001")
    assert cluster.devcluster(*UP).returncode == 0
