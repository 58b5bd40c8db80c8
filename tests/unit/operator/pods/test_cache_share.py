"""What a worker's data cache may take of its memory."""

from typing import Any

import pytest

from support.operator.objects import GIB
from support.operator.world import World


def worker_env(world: World) -> dict[str, str]:
    """The environment of the workers that the operator makes for a place of 8 GiB on one node."""
    world.settle()
    world.grant(("n1", 1, 3000, 8))
    world.settle()
    (pod,) = world.pods.values()
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}


def matrix(*memory: int) -> dict[str, Any]:
    return {
        "gpuType": "V100",
        "cpuMillis": [3000],
        "memoryBytes": list(memory),
        "stepsPerSecond": [[float(value) for value in range(1, len(memory) + 1)]],
    }


def measured(world: World, *memory: int) -> World:
    """The same job with a complete profile of its own."""
    world.settle()
    profile = world.job["status"]["profile"]
    world.job["status"]["profile"] = {
        **{key: value for key, value in profile.items() if key != "request"},
        "state": "Complete",
        "matrices": [matrix(*memory)],
    }
    return world


def test_the_measured_working_set_is_left_to_the_job() -> None:
    env = worker_env(measured(World(profile={"mode": "Auto"}), 3 * GIB, 16 * GIB))
    assert env["SYNERGY_CACHE_BYTES"] == str(5 * GIB)
    assert env["SYNERGY_MEMORY_BYTES"] == str(8 * GIB)


def test_sidecars_have_their_part_of_the_pod_s_memory() -> None:
    beside = {"name": "logs", "image": "logs:1", "resources": {"requests": {"memory": "1Gi", "cpu": "100m"}}}
    train = {"name": "train", "image": "example/train:1", "command": ["python3", "train.py"]}
    world = World(profile={"mode": "Auto"}, template={"spec": {"containers": [train, beside]}})
    env = worker_env(measured(world, 3 * GIB, 16 * GIB))
    assert env["SYNERGY_CACHE_BYTES"] == str(4 * GIB)
    assert env["SYNERGY_MEMORY_BYTES"] == str(8 * GIB)


@pytest.mark.parametrize(
    "profile", [{"mode": "Skip"}, {"mode": "Provided", "matrices": [matrix(GIB, 2 * GIB)]}, {"mode": "Auto"}]
)
def test_where_it_was_not_measured_the_user_s_minimum_counts(profile: dict[str, Any]) -> None:
    world = World(profile=profile, resources={"min": {"memory": "2Gi"}})
    if profile["mode"] == "Auto":
        measured(world, 16 * GIB)  # no memory axis
    assert worker_env(world)["SYNERGY_CACHE_BYTES"] == str(6 * GIB)


def test_a_job_of_unknown_needs_gets_no_cache() -> None:
    env = worker_env(World())
    assert not any(name.startswith("SYNERGY_CACHE") or name == "SYNERGY_MEMORY_BYTES" for name in env)


def test_a_place_below_the_working_set_has_an_empty_cache() -> None:
    assert worker_env(World(resources={"min": {"memory": "9Gi"}}))["SYNERGY_CACHE_BYTES"] == "0"


def test_a_pod_of_a_larger_job_has_its_part_of_the_working_set() -> None:
    world = World(gpus=4, gpusPerWorker=2, resources={"min": {"memory": "8Gi"}})
    world.settle()
    world.grant(("n1", 4, 12000, 32))
    world.settle()
    for pod in world.pods.values():
        env = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
        assert env["SYNERGY_CACHE_BYTES"] == str(12 * GIB)
