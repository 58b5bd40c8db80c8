"""Worker pods: places from shares, and what the template becomes."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.operator.objects import GIB, job_manifest
from support.operator.world import SETTINGS, World
from synergy_api import names
from synergy_api.amounts import Amounts
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_operator.pods.gang import gang_secret, gang_workers, headless_service, identity, split_share, worker_pod
from synergy_operator.pods.template import Additions, PodShare, pod_metadata, pod_spec
from synergy_operator.views.job import read_job
from synergy_operator.views.pod import read_pod
from synergy_operator.views.settings import WorkerSettings

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"team": "vision", "kube-synergy.dev/run": "9"}, "annotations": {"note": "kept"}},
    "spec": {
        "priorityClassName": "mine",
        "nodeSelector": {"zone": "a"},
        "restartPolicy": "Always",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["nvme"]}]},
                    ]
                }
            },
            "podAntiAffinity": {"kept": True},
        },
        "initContainers": [{"name": "fetch", "image": "i"}],
        "containers": [
            {
                "name": "train",
                "image": "i",
                "command": ["python3", "train.py"],
                "env": [
                    {"name": "RANK", "value": "99"},
                    {"name": "PYTHONPATH", "value": "/app"},
                    {"name": "A", "value": "1"},
                ],
                "resources": {"requests": {"cpu": "1"}, "limits": {"example.com/rdma": "1", "memory": "1Gi"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            },
            {"name": "log", "image": "i", "resources": {"limits": {"cpu": "250m", "memory": "1Gi"}}},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}


def made(template: dict[str, Any] = TEMPLATE, settings: WorkerSettings = SETTINGS, **spec: Any) -> dict[str, Any]:
    """Worker 1 of 2 of run 7, with 2 GPUs, 4 CPUs and 16 GiB on node n1."""
    job = read_job(job_manifest(gpus=4, gpusPerWorker=2, template=template, **spec))
    assert job.spec is not None
    share = NodeShare(node="n1", gpus=4, cpu_millis=8000, memory_bytes=32 * GIB)
    gang = gang_workers("job", Allocation(run=7, state="Granted", workers=[share]), 2)
    return dict(worker_pod(job, job.spec, 7, gang[1], size=2, settings=settings))


def env_of(pod: dict[str, Any]) -> dict[str, str]:
    """The first container's variables."""
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}


def test_the_pod_is_of_the_job_the_run_and_the_rank() -> None:
    pod = made()
    metadata = pod["metadata"]
    assert metadata["name"] == "job-7-1"
    assert metadata["labels"] == {
        "team": "vision",
        "kube-synergy.dev/job": "job",
        "kube-synergy.dev/run": "7",
        "kube-synergy.dev/rank": "1",
        "kube-synergy.dev/role": "worker",
    }
    assert metadata["annotations"] == {"note": "kept", "kube-synergy.dev/planned-node": "n1"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("TrainingJob", "uid-job", True)


def test_the_pod_waits_at_its_gate_for_its_node_alone() -> None:
    spec = made()["spec"]
    assert spec["schedulerName"] == "kube-synergy"
    assert spec["restartPolicy"] == "Never"
    assert spec["schedulingGates"] == [{"name": "kube-synergy.dev/place"}]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    pin = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    assert [term["matchFields"] for term in required["nodeSelectorTerms"]] == [pin, pin]
    assert [len(term["matchExpressions"]) for term in required["nodeSelectorTerms"]] == [1, 1]
    assert spec["affinity"]["podAntiAffinity"] == {"kept": True}
    assert spec["nodeSelector"] == {"zone": "a"}


def test_what_the_user_says_of_priority_and_tolerations_stays() -> None:
    spec = made()["spec"]
    assert spec["priorityClassName"] == "mine"
    keys = [toleration["key"] for toleration in spec["tolerations"]]
    assert keys == ["node.kubernetes.io/not-ready", "nvidia.com/gpu", "node.kubernetes.io/unreachable"]
    plain = made({"spec": {"containers": [{"name": "a", "image": "i", "command": ["c"]}]}})["spec"]
    assert plain["priorityClassName"] == "low"
    assert [t.get("tolerationSeconds") for t in plain["tolerations"]] == [None, 60, 60]
    none = made(
        {"spec": {"containers": [{"name": "a", "image": "i", "command": ["c"]}]}}, WorkerSettings("p", "u", "c")
    )
    assert "priorityClassName" not in none["spec"]


def test_the_first_container_gets_the_share_that_the_others_leave() -> None:
    first, second = made()["spec"]["containers"]
    assert first["resources"] == {
        "requests": {"cpu": "3750m", "memory": "15Gi", "nvidia.com/gpu": "2"},
        "limits": {"example.com/rdma": "1", "cpu": "3750m", "memory": "15Gi", "nvidia.com/gpu": "2"},
    }
    assert second["resources"] == {"limits": {"cpu": "250m", "memory": "1Gi"}}
    assert {policy["restartPolicy"] for policy in first["resizePolicy"]} == {"NotRequired"}


def test_a_worker_finds_its_place_in_the_gang() -> None:
    env = env_of(made())
    master = "job-7-0.tj-job.team.svc"
    assert env == {
        "WORLD_SIZE": "2",
        "RANK": "1",
        "MASTER_ADDR": master,
        "MASTER_PORT": "29500",
        "PET_NNODES": "2",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "2",
        "PET_MASTER_ADDR": master,
        "PET_MASTER_PORT": "29500",
        "SYNERGY_JOB": "job",
        "SYNERGY_NAMESPACE": "team",
        "SYNERGY_JOB_UID": "uid-job",
        "SYNERGY_RUN": "7",
        "SYNERGY_STEPS": "100",
        "SYNERGY_EXTENDER_URL": "https://extender.example:9444",
        "SYNERGY_TOKEN_FILE": "/var/run/secrets/kube-synergy/token",
        "SYNERGY_CA_CERT": "PEM",
        "SYNERGY_PEER_PORT": "29499",
        "SYNERGY_GANG_KEY_FILE": "/var/run/secrets/kube-synergy/gang-key",
        "SYNERGY_FENCE_SECONDS": "600",
        "SYNERGY_USER_PYTHONPATH": "/app",
        "A": "1",
        "PYTHONPATH": "/opt/kube-synergy/lib:$(SYNERGY_USER_PYTHONPATH)",
    }
    spec = made()["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("job-7-1", "tj-job")


LOCAL = {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK"}


def test_a_pod_of_one_gpu_is_a_process_of_its_own_for_frameworks() -> None:
    share = NodeShare(node="n1", gpus=2, cpu_millis=8000, memory_bytes=32 * GIB)
    job = read_job(job_manifest(gpus=2, gpusPerWorker=1, template=TEMPLATE))
    assert job.spec is not None
    gang = gang_workers("job", Allocation(run=7, state="Granted", workers=[share]), 1)
    env = env_of(dict(worker_pod(job, job.spec, 7, gang[1], size=2, settings=SETTINGS)))
    assert {name: env[name] for name in LOCAL} == {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": "1"}
    assert env["RANK"] == "1"


def test_a_job_of_one_gpu_is_no_gang_for_frameworks() -> None:
    share = NodeShare(node="n1", gpus=1, cpu_millis=8000, memory_bytes=32 * GIB)
    job = read_job(job_manifest(gpus=1, template=TEMPLATE))
    assert job.spec is not None
    gang = gang_workers("job", Allocation(run=7, state="Granted", workers=[share]), 1)
    env = env_of(dict(worker_pod(job, job.spec, 7, gang[0], size=1, settings=SETTINGS)))
    assert env["WORLD_SIZE"] == "1"
    assert not LOCAL & env.keys()


def test_a_later_run_knows_how_long_the_job_has_trained() -> None:
    status = {
        "progress": {"trainedSeconds": 90.9, "pausedSeconds": 7.0},
        "service": {"last": {"run": 6, "outcome": "Yielded", "trainedSeconds": 95.5}},
    }
    spec = {"gpus": 2, "steps": None, "maxRunSeconds": 100, "template": TEMPLATE}
    job = read_job({**job_manifest(**spec), "status": status})
    assert job.spec is not None
    found = identity(job, job.spec, 7)
    assert found["SYNERGY_MAX_RUN_SECONDS"] == "100"
    assert (found["SYNERGY_TRAINED_SECONDS"], found["SYNERGY_PAUSED_SECONDS"]) == ("95", "7")
    assert "SYNERGY_STEPS" not in found


def test_a_job_whose_steps_are_printed_is_followed_on_rank_0_alone() -> None:
    regex = r"step (?P<step>\d+) of $(COUNT)$"
    job = read_job(job_manifest(gpus=4, gpusPerWorker=2, template=TEMPLATE, throughput={"regex": regex}))
    assert job.spec is not None
    share = NodeShare(node="n1", gpus=4, cpu_millis=8000, memory_bytes=32 * GIB)
    gang = gang_workers("job", Allocation(run=7, state="Granted", workers=[share]), 2)
    pods = [worker_pod(job, job.spec, 7, member, size=2, settings=SETTINGS) for member in gang]
    first, second = (pod["spec"]["containers"][0]["command"] for pod in pods)
    option = r"--throughput-regex=step (?P<step>\d+) of $$(COUNT)$$"  # as Kubernetes writes a dollar
    assert first == ["python3", "-m", "synergy_profiler.follow", option, "--", "python3", "train.py"]
    assert second == ["python3", "train.py"]


def test_steps_that_are_not_counted_over_all_runs_are_read_in_profile_runs_only() -> None:
    pod = made(throughput={"regex": "one more step"})
    assert pod["spec"]["containers"][0]["command"] == ["python3", "train.py"]


@pytest.mark.parametrize(("asked", "given"), [(None, None), (30, 30), (600, 600), (100_000_000, 600)])
def test_no_grace_period_is_longer_than_the_administrator_allows(asked: int | None, given: int | None) -> None:
    template = copy.deepcopy(TEMPLATE)
    if asked is not None:
        template["spec"]["terminationGracePeriodSeconds"] = asked
    job = read_job(job_manifest(gpus=1, template=template))
    assert job.spec is not None
    allocation = Allocation(
        run=7, state="Granted", workers=[NodeShare(node="n1", gpus=1, cpu_millis=2000, memory_bytes=GIB)]
    )
    (alone,) = gang_workers("job", allocation, None)
    pod = worker_pod(job, job.spec, 7, alone, size=1, settings=SETTINGS, most_grace_seconds=600)
    assert pod["spec"].get("terminationGracePeriodSeconds") == given


def test_the_library_comes_by_an_init_container_that_may_do_nothing_else() -> None:
    spec = made()["spec"]
    copy, fetch = spec["initContainers"]
    assert fetch["name"] == "fetch"
    assert copy["image"] == "example/profiler:1"
    assert copy["command"] == ["cp", "-R", "/opt/kube-synergy/lib/.", "/kube-synergy-lib/"]
    assert copy["resources"]["requests"] == copy["resources"]["limits"], "a Guaranteed pod stays one"
    assert copy["securityContext"]["runAsNonRoot"]
    assert copy["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    assert mounts == {
        "data": "/data",
        "kube-synergy-lib": "/opt/kube-synergy/lib",
        "kube-synergy-shm": "/dev/shm",
        "kube-synergy-token": "/var/run/secrets/kube-synergy",
    }
    token, key = spec["volumes"][-1]["projected"]["sources"]
    assert token["serviceAccountToken"]["audience"] == "kube-synergy-extender"
    assert key["secret"]["items"] == [{"key": "gang-key", "path": "gang-key"}]


def test_shared_memory_is_half_of_what_the_plan_gives_the_container() -> None:
    volumes = {volume["name"]: volume for volume in made()["spec"]["volumes"]}
    assert volumes["kube-synergy-shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": str(15 * GIB // 2)}


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/"])
def test_shared_memory_that_the_template_mounts_is_left_as_it_is(path: str) -> None:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": path}]
    spec = made(template)["spec"]
    assert "kube-synergy-shm" not in {volume["name"] for volume in spec["volumes"]}
    assert [mount["name"] for mount in spec["containers"][0]["volumeMounts"]].count("data") == 1


def test_a_mount_without_a_path_is_left_to_the_api_server() -> None:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": None}]
    assert "kube-synergy-shm" in {volume["name"] for volume in made(template)["spec"]["volumes"]}


def test_a_gang_s_key_is_in_a_secret_of_this_very_job_and_never_in_a_pod_s_spec() -> None:
    job = read_job(job_manifest(gpus=4, gpusPerWorker=2, template=TEMPLATE))
    secret = gang_secret(job)
    assert secret["metadata"]["name"] == f"tj-job-gang-{job.uid}"
    assert secret["metadata"]["ownerReferences"][0]["uid"] == job.uid
    assert secret["immutable"] is True
    assert not {"data", "stringData"} & set(secret), "the executor draws the key"
    _, key = made()["spec"]["volumes"][-1]["projected"]["sources"]
    assert key["secret"]["name"] == secret["metadata"]["name"]


@pytest.mark.parametrize(("gpus", "sources"), [(1, 1), (2, 2)])
def test_a_single_pod_has_a_gang_where_it_has_several_gpus(gpus: int, sources: int) -> None:
    """One process for each GPU, under torchrun."""
    job = read_job(job_manifest(gpus=gpus, template=TEMPLATE))
    assert job.spec is not None
    share = NodeShare(node="n1", gpus=gpus, cpu_millis=8000, memory_bytes=32 * GIB)
    (alone,) = gang_workers("job", Allocation(run=7, state="Granted", workers=[share]), None)
    pod = worker_pod(job, job.spec, 7, alone, size=1, settings=SETTINGS)
    assert len(pod["spec"]["volumes"][-1]["projected"]["sources"]) == sources
    assert ("SYNERGY_GANG_KEY_FILE" in env_of(pod)) == (sources == 2)


def test_the_user_s_template_is_not_changed_by_using_it() -> None:
    before = repr(TEMPLATE)
    made()
    assert repr(TEMPLATE) == before


def test_the_service_names_workers_that_are_not_ready_yet() -> None:
    service = headless_service(World().view)
    assert service["metadata"]["name"] == "tj-job"
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"kube-synergy.dev/job": "job", "kube-synergy.dev/role": "worker"}


def test_ranks_go_by_node_whatever_the_plan_s_order() -> None:
    shares = [NodeShare(node=name, gpus=2, cpu_millis=10, memory_bytes=10) for name in ("b", "a")]
    forth = gang_workers("job", Allocation(run=1, state="Granted", workers=shares), 1)
    back = gang_workers("job", Allocation(run=1, state="Granted", workers=shares[::-1]), 1)
    assert forth == back
    assert [worker.share.node for worker in forth] == ["a", "a", "b", "b"]


def test_without_a_worker_size_a_node_has_one_worker() -> None:
    share = NodeShare(node="a", gpus=3, cpu_millis=7, memory_bytes=11)
    assert split_share(share, None) == (PodShare("a", Amounts(3, 7, 11)),)


@given(
    gpus=st.integers(1, 64),
    size=st.integers(1, 64),
    cpu=st.integers(1, 10**6),
    memory=st.integers(1, 1 << 42),
)
def test_a_share_is_split_without_loss_and_in_proportion(gpus: int, size: int, cpu: int, memory: int) -> None:
    places = split_share(NodeShare(node="a", gpus=gpus, cpu_millis=cpu, memory_bytes=memory), size)
    assert sum(place.gpus for place in places) == gpus
    assert sum(place.amounts.cpu_millis for place in places) == cpu
    assert sum(place.amounts.memory_bytes for place in places) == memory
    for place in places:
        assert 1 <= place.gpus <= size
        assert abs(place.amounts.cpu_millis - cpu * place.gpus / gpus) < 1
        assert abs(place.amounts.memory_bytes - memory * place.gpus / gpus) < 1


@pytest.mark.parametrize("missing", ["creationTimestamp", "uid"])
def test_an_object_that_is_no_pod_of_ours_is_an_error_to_read(missing: str) -> None:
    pod = made()
    pod["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert read_pod(pod).rank == 1
    del pod["metadata"][missing]
    with pytest.raises(KeyError, match=missing):
        read_pod(pod)


def test_a_template_cannot_say_what_only_the_operator_says_of_a_pod() -> None:
    ours = {f"kube-synergy.dev/{name}": "x" for name in ("ungated-at", "job-uid", "devices", "bound", "cpu-millis")}
    template = {"metadata": {"labels": {"kube-synergy.dev/else": "x"}, "annotations": {**ours, "note": "kept"}}}
    world = World(template={**TEMPLATE, **template})
    world.settle()
    world.grant()
    world.settle()
    (pod,) = world.pods.values()
    assert "x" not in pod["metadata"]["annotations"].values()
    assert pod["metadata"]["annotations"]["note"] == "kept"
    assert "kube-synergy.dev/else" not in pod["metadata"]["labels"]
    assert read_pod(pod).owner == world.job["metadata"]["uid"]


@pytest.mark.parametrize("resource", ["amd.com/gpu", "nvidia.com/mig-1g.10gb"])
def test_a_worker_asks_for_what_the_node_calls_its_gpus_and_tolerates_its_taint(resource: str) -> None:
    template = copy.deepcopy(TEMPLATE)
    asked = {"nvidia.com/gpu": "1", "amd.com/gpu": "1", "rdma/hca": "1"}
    template["spec"]["containers"][0]["resources"] = {"limits": asked, "requests": asked}
    share = PodShare("n1", Amounts(2, 4000, 1 << 34), resource=resource)
    spec = pod_spec(template, share, SETTINGS, Additions(env={}))
    for part in ("requests", "limits"):
        amounts = spec["containers"][0]["resources"][part]
        assert {name: amounts[name] for name in amounts if "/" in name} == {resource: "2", "rdma/hca": "1"}
    assert {"key": resource, "operator": "Exists"} in spec["tolerations"]
    annotations = pod_metadata(template, {}, share)["annotations"]
    assert annotations[names.ANNOTATION_RESOURCE] == resource
    metadata = {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "1", "annotations": annotations}
    seen = read_pod({"metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec})
    assert seen.gpus == 2
