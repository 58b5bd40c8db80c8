"""Jobs with the label on a real API server and Job controller: queued, placed, preempted, resumed, complete."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from support.on_cluster.jobs import appears, reaches
from support.on_cluster.neighbours import label
from support.waiting import eventually
from synergy_api import names
from synergy_kube import KubeClient
from synergy_kube.resources import EVENTS, JOBS, PODS, SCHEDULING_POLICIES, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("scheduling")]

Json = dict[str, Any]
NODE = "fake-v100-024"
SELECTOR = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}


def a_job(seconds: int, *, pods: int = 2, suspend: bool = True, exit_code: int = 0, **spec: Any) -> Json:
    """A Job with the label that may be preempted; its pods end on fake nodes after `seconds`."""
    marks = {"kwok.kube-synergy.dev/run-seconds": str(seconds), "kwok.kube-synergy.dev/exit-code": str(exit_code)}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    tolerations = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": SELECTOR,
        "tolerations": tolerations,
        "containers": [{"name": "train", "image": "example/train:1", "resources": resources}],
    }
    return {
        "metadata": {
            "name": "train",
            "labels": {names.LABEL_MANAGED: "true"},
            "annotations": {names.ANNOTATION_PREEMPTIBLE: "true"},
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "suspend": suspend,
            "template": {"metadata": {"annotations": marks}, "spec": pod},
            **spec,
        },
    }


@pytest_asyncio.fixture
async def turns(kube: KubeClient, scheduling: object) -> AsyncIterator[None]:
    """One node of eight GPUs, on which jobs take turns in rounds of 5 s."""
    before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    often = {"minimumRunSeconds": 0, "payback": 0, "maxCheckpointSeconds": 30}
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"policy": "las", "preemption": often}})
    await label(kube, [NODE], pool="turns")
    yield
    await label(kube, [NODE], pool=None)
    restored = {"policy": before["policy"], "preemption": before.get("preemption")}
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": restored})


async def job(kube: KubeClient, namespace: str) -> Json:
    return await kube.get(JOBS, "train", namespace)


async def shows(kube: KubeClient, namespace: str, text: str, seconds: float = 60) -> Json:
    """The Job once its annotation begins with the text."""

    async def there() -> Json | None:
        item = await job(kube, namespace)
        shown = (item["metadata"].get("annotations") or {}).get(names.ANNOTATION_STATUS, "")
        return item if shown.startswith(text) else None

    return await eventually(there, seconds=seconds, what=f"the Job to show {text}")


async def pods(kube: KubeClient, namespace: str) -> list[Json]:
    return list((await kube.list(PODS, namespace))["items"])


@pytest.mark.parametrize("scheduler", ["default-scheduler", names.SCHEDULER_NAME])
async def test_a_job_waits_in_the_queue_and_completes_by_its_own_controller(
    kube: KubeClient, namespace: str, scheduler: str
) -> None:
    wanted = a_job(8, suspend=False)  # long enough to be seen while they run, on a busy machine too
    wanted["spec"]["template"]["spec"]["schedulerName"] = scheduler
    await kube.create(JOBS, wanted, namespace)
    await appears(kube, namespace, "job-train", seconds=60)
    running = await reaches(kube, namespace, "job-train", "Running", seconds=60)
    owner = running["metadata"]["ownerReferences"][0]
    own = await job(kube, namespace)
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", own["metadata"]["uid"], True)
    assert own["spec"]["suspend"] is False
    planned = {share["node"]: share["gpus"] for share in running["status"]["allocation"]["workers"]}
    found: dict[str, int] = {}
    for pod in await pods(kube, namespace):
        node = pod["spec"]["nodeName"]
        found[node] = found.get(node, 0) + 1
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"
        assert pod["metadata"]["annotations"][names.ANNOTATION_PLANNED_NODE] == node
        assert pod["spec"]["schedulerName"] == scheduler
    assert found == planned
    done = await shows(kube, namespace, "Succeeded")
    assert done["status"]["succeeded"] == 2
    assert "Complete" in {one["type"] for one in done["status"]["conditions"]}
    status = (await kube.get(TRAINING_JOBS, "job-train", namespace))["status"]
    assert status["service"]["last"]["reason"].startswith("OwnerSucceeded")

    async def told() -> bool:
        listed = (await kube.list(EVENTS, namespace, field_selector="involvedObject.kind=Job"))["items"]
        return any("TrainingJob job-train is Succeeded" in event["message"] for event in listed)

    await eventually(told, seconds=60, what="an event on the Job")


async def test_a_preempted_job_is_suspended_and_resumed_and_has_not_failed(kube: KubeClient, namespace: str) -> None:
    await kube.create(JOBS, a_job(3600), namespace)
    await appears(kube, namespace, "job-train", seconds=60)
    await reaches(kube, namespace, "job-train", "Running", seconds=60)
    before = {pod["metadata"]["uid"] for pod in await pods(kube, namespace)}
    await kube.merge_patch(TRAINING_JOBS, "job-train", {"spec": {"suspend": True}}, namespace)
    await reaches(kube, namespace, "job-train", "Suspended", seconds=60)
    assert (await job(kube, namespace))["spec"]["suspend"] is True
    assert await pods(kube, namespace) == []
    await kube.merge_patch(TRAINING_JOBS, "job-train", {"spec": {"suspend": False}}, namespace)
    again = await reaches(kube, namespace, "job-train", "Running", seconds=60)
    assert again["status"]["service"]["failures"] == 0
    assert not (await job(kube, namespace))["status"].get("failed")
    after = {pod["metadata"]["uid"] for pod in await pods(kube, namespace)}
    assert len(after) == 2
    assert not before & after


@pytest.mark.usefixtures("turns")
async def test_plans_suspend_a_job_for_another_at_a_round_s_end(kube: KubeClient, namespace: str) -> None:
    for name in ("one", "two"):
        wanted = a_job(3600, pods=8)
        wanted["metadata"]["name"] = name
        wanted["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "turns"}
        await kube.create(JOBS, wanted, namespace)
    suspended: list[tuple[bool, bool]] = []

    async def turned() -> bool:
        one, two = [(await kube.get(JOBS, name, namespace))["spec"]["suspend"] for name in ("one", "two")]
        assert one or two, "both have the node"
        if not suspended or suspended[-1] != (one, two):
            suspended.append((one, two))
        ran = [state for state in suspended if state != (True, True)]
        return len(ran) >= 2

    await eventually(turned, seconds=90, what="one to run, and then the other")
    first = "one" if not next(state for state in suspended if state != (True, True))[0] else "two"
    assert not (await kube.get(JOBS, first, namespace))["status"].get("failed")
    service = (await kube.get(TRAINING_JOBS, f"job-{first}", namespace))["status"]["service"]
    assert (service["failures"], service["preemptions"]) == (0, 1)


async def test_a_job_of_which_a_pod_fails_goes_on_with_another(kube: KubeClient, namespace: str) -> None:
    await kube.create(JOBS, a_job(3600, backoffLimit=3), namespace)
    await appears(kube, namespace, "job-train", seconds=60)
    await reaches(kube, namespace, "job-train", "Running", seconds=60)
    lost = (await pods(kube, namespace))[0]
    await kube.delete(PODS, lost["metadata"]["name"], namespace)

    async def replaced() -> Json | None:
        return next(
            (
                pod
                for pod in await pods(kube, namespace)
                if pod["metadata"]["labels"].get(names.LABEL_RANK) == lost["metadata"]["labels"][names.LABEL_RANK]
                and pod["metadata"]["uid"] != lost["metadata"]["uid"]
                and pod["status"]["phase"] == "Running"
            ),
            None,
        )

    pod = await eventually(replaced, seconds=60, what="a pod in its place")
    assert pod["spec"]["nodeName"] == lost["spec"]["nodeName"]
    status = (await kube.get(TRAINING_JOBS, "job-train", namespace))["status"]
    assert (status["phase"], status["service"]["run"]) == ("Running", 1)


async def test_a_job_that_fails_by_its_own_limit_has_failed(kube: KubeClient, namespace: str) -> None:
    await kube.create(JOBS, a_job(1, pods=1, exit_code=3, backoffLimit=0), namespace)
    await appears(kube, namespace, "job-train", seconds=60)
    failed = await reaches(kube, namespace, "job-train", "Failed", seconds=60)
    finished = next(one for one in failed["status"]["conditions"] if one["type"] == "Finished")
    assert finished["reason"] == "OwnerFailed"
    assert "backoff limit" in finished["message"]
    await shows(kube, namespace, "Failed")


async def test_a_job_that_may_not_be_preempted_waits_for_its_tenant_s_cap(kube: KubeClient, namespace: str) -> None:
    never = a_job(3600, pods=1)
    del never["metadata"]["annotations"]
    await kube.create(JOBS, never, namespace)
    await shows(kube, namespace, "Queued: NeverPreemptedCap")
    assert (await job(kube, namespace))["spec"]["suspend"] is True


async def test_a_job_without_gpus_is_left_alone_and_told(kube: KubeClient, namespace: str) -> None:
    bare = a_job(1, pods=1, suspend=False)
    del bare["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    await kube.create(JOBS, bare, namespace)
    await shows(kube, namespace, "NotManaged")
    assert (await job(kube, namespace))["spec"]["suspend"] is False
    assert (await kube.list(TRAINING_JOBS, namespace))["items"] == []
