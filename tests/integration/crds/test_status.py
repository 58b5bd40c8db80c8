"""Status has several owners: none undoes another's part, and the main resource cannot write it."""

from typing import Any

import pytest

from support.api_server import manifests as samples
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_kube import KubeClient
from synergy_kube.errors import ApiError
from synergy_kube.resources import TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]

RELEASED = {
    "run": 1,
    "state": "Released",
    "gpuType": "V100",
    "workers": [{"node": "gone", "gpus": 1, "cpuMillis": 1, "memoryBytes": 1}],
    "nodes": 1,
}


async def _say(kube: KubeClient, namespace: str, owner: str, status: dict[str, Any]) -> dict[str, Any]:
    body = {"status": status}
    await kube.apply(TRAINING_JOBS, "small", body, namespace, manager=owner, subresource="status", force=False)
    stored: dict[str, Any] = (await kube.get(TRAINING_JOBS, "small", namespace))["status"]
    return stored


async def test_owners_of_status_do_not_undo_each_other(kube: KubeClient, namespace: str) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    times = {"startTime": "2026-11-21T10:00:00Z", "completionTime": "2026-11-21T11:00:00Z"}
    await _say(kube, namespace, "test-a", {**times, "conditions": [samples.CONDITION]})
    await _say(kube, namespace, "test-b", {"allocation": RELEASED})
    await _say(kube, namespace, "test-c", {"progress": {"steps": 5, "percent": 50, "stepsPerSecond": 2.5}})

    status = await _say(kube, namespace, "test-a", {"startTime": times["startTime"]})

    assert status["startTime"] == times["startTime"]
    assert "completionTime" not in status
    assert "Ready" not in [condition["type"] for condition in status.get("conditions", [])]
    assert status["allocation"] == RELEASED
    assert status["progress"]["steps"] == 5
    assert TrainingJobStatus.model_validate(status).allocation is not None


async def test_each_owner_keeps_its_own_condition(kube: KubeClient, namespace: str) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    await _say(kube, namespace, "test-a", {"conditions": [{**samples.CONDITION, "type": "TestA"}]})
    await _say(kube, namespace, "test-b", {"conditions": [{**samples.CONDITION, "type": "TestB"}]})
    status = await _say(kube, namespace, "test-a", {"conditions": [{**samples.CONDITION, "type": "TestA2"}]})
    types = {condition["type"] for condition in status["conditions"]}
    assert {"TestA2", "TestB"} <= types
    assert "TestA" not in types


async def test_one_owner_cannot_take_anothers_field_without_force(kube: KubeClient, namespace: str) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    await _say(kube, namespace, "test-a", {"startTime": "2026-11-21T10:00:00Z"})
    with pytest.raises(ApiError, match=r"conflict with \"test-a\".*\n?.*\.status\.startTime"):
        await _say(kube, namespace, "test-b", {"startTime": "2026-11-21T12:00:00Z"})


async def test_the_api_server_adds_nothing_to_a_status(kube: KubeClient, namespace: str) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    allocation = (await _say(kube, namespace, "test-b", {"allocation": RELEASED}))["allocation"]
    assert allocation == RELEASED


async def test_a_user_cannot_write_status_with_the_spec(kube: KubeClient, namespace: str) -> None:
    created = await kube.create(TRAINING_JOBS, {**samples.SMALL_JOB, "status": {"phase": "Succeeded"}}, namespace)
    assert created.get("status", {}).get("phase") != "Succeeded"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Dreaming"}, 'status.phase: Unsupported value: "Dreaming"'),
        ({"conditions": [{**samples.CONDITION, "status": "yes"}]}, "status.conditions[0].status: Unsupported value"),
        ({"allocation": {**RELEASED, "state": "Lost"}}, "status.allocation.state: Unsupported value"),
        ({"progress": {"percent": 101}}, "status.progress.percent: Invalid value: 101"),
        ({"service": {"receivedSeconds": {"V100": -1}}}, "status.service.receivedSeconds.V100: Invalid value: -1"),
        ({"service": {"spreadSeconds": {"V100": -1}}}, "status.service.spreadSeconds.V100: Invalid value: -1"),
    ],
)
async def test_a_wrong_status_is_refused_and_the_message_names_the_field(
    kube: KubeClient, namespace: str, status: dict[str, Any], words: str
) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    with pytest.raises(ApiError) as caught:
        await _say(kube, namespace, "test-a", status)
    assert words in caught.value.message
