"""Arrays on the real API server, with the rights that the chart gives the operator and no others."""

from typing import Any

import pytest

import synergy_devcluster
from support.operator.stage import Stage, condition
from support.programs import run
from support.waiting import eventually
from synergy_kube import ApiError
from synergy_kube.resources import RESOURCE_QUOTAS, TRAINING_JOBS

pytestmark = pytest.mark.integration
SWEEP = "kube-synergy.dev/array=job"


async def members(stage: Stage) -> dict[str, dict[str, Any]]:
    listed = await stage.kube.list(TRAINING_JOBS, stage.namespace, label_selector=SWEEP)
    return {item["metadata"]["name"]: item for item in listed["items"]}


async def there_are(stage: Stage, *names: str) -> None:
    async def so() -> bool:
        return sorted(await members(stage)) == sorted(names)

    try:
        await eventually(so, seconds=20, what=f"the members {names}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {sorted(await members(stage))}, {await stage.job()}") from None


async def ends(stage: Stage, name: str, phase: str) -> None:
    await stage.kube.merge_patch(
        TRAINING_JOBS, name, {"status": {"phase": phase}}, stage.namespace, subresource="status"
    )


async def set_spec(stage: Stage, **fields: Any) -> None:
    await stage.kube.merge_patch(TRAINING_JOBS, "job", {"spec": fields}, stage.namespace)


async def progress(cluster: synergy_devcluster.Cluster, stage: Stage) -> str:
    """The column Progress of `kubectl get`."""
    shown = await run(cluster, "kubectl", "get", "tj", "job", f"--namespace={stage.namespace}")
    titles, row = shown.splitlines()
    at = titles.index("PROGRESS")
    return row[at:].split()[0]


async def test_an_array_from_its_first_job_to_its_end(stage: Stage) -> None:
    await stage.submit(array={"count": 3, "maxParallel": 2})
    await there_are(stage, "job-0", "job-1")
    await ends(stage, "job-0", "Succeeded")
    await there_are(stage, "job-0", "job-1", "job-2")
    await set_spec(stage, suspend=True)

    async def suspended() -> bool:
        return [one["spec"].get("suspend", False) for _, one in sorted((await members(stage)).items())] == [
            False,
            True,
            True,
        ]

    await eventually(suspended, seconds=20, what="the open members to be suspended")
    await set_spec(stage, suspend=False)
    await stage.kube.delete(TRAINING_JOBS, "job-0", stage.namespace)
    await ends(stage, "job-1", "Succeeded")
    await ends(stage, "job-2", "Failed")
    status = await stage.phase("Failed")
    assert status["array"] == {
        "running": 0, "waiting": 0, "succeeded": 2, "failed": 1, "succeededIndexes": "0-1", "failedIndexes": "2",
        "progress": "3/3",
    }  # fmt: skip
    assert condition(status, "Finished")["reason"] == "MembersFailed"
    assert "job-0" not in await members(stage), "a finished one is not made again"
    await stage.kube.delete(TRAINING_JOBS, "job", stage.namespace)
    await there_are(stage)


async def test_a_quota_on_jobs_holds_for_members(stage: Stage) -> None:
    quota = {"metadata": {"name": "jobs"}, "spec": {"hard": {"count/trainingjobs.kube-synergy.dev": "2"}}}
    await stage.kube.create(RESOURCE_QUOTAS, quota, stage.namespace)

    async def holds() -> bool:
        return "hard" in ((await stage.kube.get(RESOURCE_QUOTAS, "jobs", stage.namespace)).get("status") or {})

    await eventually(holds, seconds=20, what="the quota to hold")
    await stage.submit(array={"count": 3})

    async def one_is_there() -> bool:  # whichever of the three requests came first
        return len(await members(stage)) == 1

    await eventually(one_is_there, seconds=20, what="one member")
    job = await stage.until("refused", lambda s: condition(s, "Running").get("reason") == "MemberRefused")
    assert "exceeded quota" in condition(job["status"], "Running")["message"]
    assert len(await members(stage)) == 1, "the array itself counts too"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"array": {"count": 0}}, "spec.array.count"),
        ({"array": {"count": 1001}}, "spec.array.count"),
        ({"array": {"count": 2, "maxParallel": 0}}, "spec.array.maxParallel"),
        ({"array": {}}, "spec.array.count"),
    ],
)
async def test_what_cannot_be_is_refused_by_its_field(stage: Stage, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ApiError) as refused:
        await stage.submit(**fields)
    assert problem in str(refused.value)


async def test_what_is_fixed_and_too_long_a_name(devcluster: synergy_devcluster.Cluster, stage: Stage) -> None:
    with pytest.raises(ApiError, match=r"metadata\.name of an array must be at most 46 characters"):
        await stage.submit("n" * 47, array={"count": 2})
    await stage.submit(array={"count": 2})
    with pytest.raises(ApiError, match="count is fixed"):
        await set_spec(stage, array={"count": 3})
    with pytest.raises(ApiError, match="array can be neither added nor removed later"):
        await set_spec(stage, array=None)
    await there_are(stage, "job-0", "job-1")
    assert await progress(devcluster, stage) == "0/2"
