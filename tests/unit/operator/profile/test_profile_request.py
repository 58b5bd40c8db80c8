"""Profile series: the place that one asks for, and the Job that measures there."""

import pytest

from support.operator.objects import GIB, node
from support.operator.profile_world import AUTO, asking, granted
from support.operator.world import World


def test_the_highest_point_is_four_proportional_shares() -> None:
    world = asking()
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    assert world.status.phase == "Profiling"
    assert profile.state == "Waiting"
    assert profile.request.to_wire() == {
        "gpuType": "V100",
        "gpus": 1,
        "cpuMillis": 12000,
        "memoryBytes": 8 * GIB,
    }
    assert world.reason("Profiled") == "ProfileWaiting"
    assert world.reason("Running") == "WaitingForProfile"


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        ({"resources": {"max": {"cpu": "5"}}}, 5000, 8 * GIB),
        ({"resources": {"max": {"memory": "3Gi"}}}, 12000, 3 * GIB),
        ({"dataset": {"bytes": 4 * GIB, "samples": 10}, "batchSize": 2}, 12000, 12 * GIB),
        ({"dataset": {"bytes": 400 * GIB, "samples": 10}, "batchSize": 2}, 12000, 64 * GIB),
        ({"dataset": {"bytes": 4 * GIB, "samples": 10}}, 12000, 8 * GIB),
    ],
)
def test_the_request_keeps_to_the_spec_and_the_node(spec: dict[str, object], cpu: int, memory: int) -> None:
    world = World(profile=AUTO, **spec)
    pool = {"nodeSelector": {"nvidia.com/gpu.product": "V100"}, "gpuType": "V100", "storageBandwidth": GIB}
    world.pools = [{"metadata": {"name": "pool", "resourceVersion": "1"}, "spec": pool}]
    world.settle()
    assert world.status.profile is not None
    request = world.status.profile.request
    assert request is not None
    assert (request.cpu_millis, request.memory_bytes) == (cpu, memory)


def test_a_small_node_bounds_the_request() -> None:
    world = World([node("n1", gpus=2, cpu=2, gib=4)], profile=AUTO)
    world.settle()
    assert world.status.profile is not None
    assert world.status.profile.request is not None
    assert world.status.profile.request.cpu_millis == 2000


def test_a_profile_pod_is_one_worker_of_the_job() -> None:
    world = granted(gpus=16, gpusPerWorker=2)
    (job,) = world.jobs.values()
    spec = job["spec"]["template"]["spec"]
    container = spec["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert container["resources"]["limits"]["cpu"] == "24"
    assert (env["WORLD_SIZE"], env["RANK"], env["PET_NPROC_PER_NODE"]) == ("1", "0", "2")
    assert spec["schedulerName"] == "kube-synergy"


def test_the_harness_wraps_the_user_s_command() -> None:
    world = granted(profile={"mode": "Auto", "steps": 20, "warmupSteps": 3, "timeoutSeconds": 99})
    (job,) = world.jobs.values()
    container = job["spec"]["template"]["spec"]["containers"][0]
    words = [
        "python3",
        "-m",
        "synergy_profiler",
        "--warmup-steps",
        "3",
        "--steps",
        "20",
        "--timeout",
        "99",
        "--counters",
        "Auto",
        "--workers",
        "1",
        "--",
        "python3",
        "train.py",
    ]
    assert container["command"] == words
    assert container["args"] == ["--fast"]
    assert container["env"][-1] == {"name": "PYTHONPATH", "value": "/opt/kube-synergy/lib"}
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == 699
    assert job["metadata"]["name"] == "job-1-12000"


def test_the_harness_is_told_how_steps_are_printed() -> None:
    world = granted(throughput={"regex": "step done$"})
    (job,) = world.jobs.values()
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--") - 1] == "--throughput-regex=step done$$"


def test_no_open_node_of_an_allowed_type_leaves_the_job_pending_with_a_reason() -> None:
    world = World([node("n1", ready=False)], profile=AUTO, gpuTypes=["V100"])
    world.settle()
    assert world.status.phase == "Pending"
    assert world.reason("Profiled") == "NoNodeToProfile"
    world.nodes["n1"] = node("n1")
    world.settle()
    assert world.status.phase == "Profiling"
