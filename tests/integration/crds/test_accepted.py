"""The API server takes the definitions, and everything a user may write."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.api_server import manifests as samples
from synergy_api.generation.crd import KINDS, custom_resource_definition
from synergy_api.names import API_VERSION
from synergy_kube import KubeClient
from synergy_kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    GPU_POOLS,
    SCHEDULING_POLICIES,
    TENANTS,
    THROUGHPUT_PROFILES,
    TRAINING_JOBS,
    Resource,
)

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]

BY_KIND = {item.kind: item for item in (GPU_POOLS, SCHEDULING_POLICIES, TENANTS, THROUGHPUT_PROFILES, TRAINING_JOBS)}
FULL = {
    "TrainingJob": samples.FULL_JOB,
    "GPUPool": samples.FULL_POOL,
    "SchedulingPolicy": samples.FULL_POLICY,
    "ThroughputProfile": samples.FULL_PROFILE,
    "Tenant": samples.FULL_TENANT,
}
OTHER_ENDS = {"epochs": 90, "maxRunSeconds": 3600}
"""What a job may give instead of the steps of the full sample."""
DRA = {
    "backend": "DRA",
    "deviceClass": "gpu.test",
    "driver": "driver.test",
    "attributes": {"productName": "A100"},
}
"""What a pool may give instead of the resource of a device plugin."""
SMALL = {
    "TrainingJob": samples.SMALL_JOB,
    "GPUPool": samples.SMALL_POOL,
    "SchedulingPolicy": samples.SMALL_POLICY,
    "ThroughputProfile": samples.SMALL_PROFILE,
    "Tenant": samples.SMALL_TENANT,
}


async def _dry_create(kube: KubeClient, resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
    namespace = "default" if resource.namespaced else None
    return await kube.create(resource, body, namespace, dry_run=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_the_definition_is_established_and_structural(kube: KubeClient, kind: Any) -> None:
    stored = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, kind.crd_name)
    conditions = {item["type"]: item["status"] for item in stored["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize("kind", SMALL)
async def test_the_least_a_user_can_write_is_accepted(kube: KubeClient, kind: str) -> None:
    created = await _dry_create(kube, BY_KIND[kind], SMALL[kind])
    assert created["apiVersion"] == API_VERSION


@pytest.mark.parametrize("kind", FULL)
async def test_every_optional_field_is_accepted_and_kept(kube: KubeClient, kind: str) -> None:
    created = await _dry_create(kube, BY_KIND[kind], FULL[kind])
    assert created["spec"] == FULL[kind]["spec"]


@pytest.mark.parametrize(("field", "value"), OTHER_ENDS.items())
async def test_a_job_may_end_by_something_else_than_steps(kube: KubeClient, field: str, value: int) -> None:
    job = samples.changed(samples.FULL_JOB, f"spec.{field}", value)
    for needs_steps in ("steps", "throughput"):
        del job["spec"][needs_steps]
    assert (await _dry_create(kube, TRAINING_JOBS, job))["spec"] == job["spec"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_full_samples_leave_no_field_of_a_spec_out(kind: Any) -> None:
    schema = custom_resource_definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    missing = set(_schema_paths("", schema["properties"]["spec"])) - set(_paths("", FULL[kind.name]["spec"]))
    others = {f".{field}" for field in OTHER_ENDS} | {
        f".managed{part}" for part in ("", ".apiVersion", ".kind", ".name")
    }
    left = {"TrainingJob": others, "GPUPool": {f".devices.{field}" for field in DRA if field != "backend"}}
    assert missing == left.get(kind.name, set())


async def test_a_pool_may_have_devices_of_dra(kube: KubeClient) -> None:
    pool = samples.changed(samples.SMALL_POOL, "spec.devices", DRA)
    assert (await _dry_create(kube, GPU_POOLS, pool))["spec"]["devices"] == DRA


async def test_the_pods_of_a_managed_object_may_start_by_their_image_s_command(kube: KubeClient) -> None:
    managed = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}
    job = samples.changed(samples.SMALL_JOB, "spec.managed", managed)
    del job["spec"]["template"]["spec"]["containers"][0]["command"]
    stored = (await _dry_create(kube, TRAINING_JOBS, job))["spec"]
    assert stored["managed"] == managed
    assert "command" not in stored["template"]["spec"]["containers"][0]


async def test_a_job_is_stored_as_it_was_written_with_five_defaults(kube: KubeClient) -> None:
    spec = (await _dry_create(kube, TRAINING_JOBS, samples.SMALL_JOB))["spec"]
    defaults = {"weight": 1, "preemption": "Checkpoint", "placement": "Auto", "suspend": False, "backoffLimit": 3}
    assert spec == {**defaults, **samples.SMALL_JOB["spec"]}


async def test_an_object_that_the_user_writes_gets_the_defaults_of_its_values(kube: KubeClient) -> None:
    half = samples.changed(samples.SMALL_JOB, "spec.profile", {"steps": 7})
    stored = (await _dry_create(kube, TRAINING_JOBS, half))["spec"]["profile"]
    assert stored == {"mode": "Auto", "steps": 7, "warmupSteps": 5, "timeoutSeconds": 600, "counters": "Auto"}


async def test_the_greatest_matrices_stay_within_the_cost_limit_of_the_rules(kube: KubeClient) -> None:
    axis = list(range(1, 65))
    matrix = {"cpuMillis": axis, "memoryBytes": axis, "stepsPerSecond": [[1.5] * 64] * 64}
    matrices = [{"gpuType": f"type-{number}", **matrix} for number in range(16)]
    job = samples.changed(samples.FULL_JOB, "spec.profile.matrices", matrices)
    created = await _dry_create(kube, TRAINING_JOBS, job)
    assert len(created["spec"]["profile"]["matrices"]) == 16


async def test_a_name_of_50_characters_is_accepted(kube: KubeClient) -> None:
    created = await _dry_create(
        kube, TRAINING_JOBS, samples.changed(samples.SMALL_JOB, "metadata.name", "1" + "n" * 49)
    )
    assert len(created["metadata"]["name"]) == 50


async def test_every_example_manifest_is_accepted(kube: KubeClient, repository: Path) -> None:
    files = sorted((repository / "examples" / "manifests").rglob("*.yaml"))
    assert files
    ours = 0
    for file in files:
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["apiVersion"] == API_VERSION:
                document["metadata"].pop("namespace", None)
                await _dry_create(kube, BY_KIND[document["kind"]], document)
                ours += 1
    assert ours


def _schema_paths(prefix: str, node: dict[str, Any]) -> Iterator[str]:
    while node.get("type") == "array":
        node = node["items"]
    for name, field in node.get("properties", {}).items():
        yield f"{prefix}.{name}"
        yield from _schema_paths(f"{prefix}.{name}", field)


def _paths(prefix: str, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _paths(prefix, item)
    elif isinstance(value, dict):
        for name, field in value.items():
            yield f"{prefix}.{name}"
            yield from _paths(f"{prefix}.{name}", field)
