"""Training runs on the real API server: pods, gates, resizes, leaving, and what may go wrong."""

import signal
from contextlib import suppress

import pytest

from support.operator.stage import NODES, Json, OperatorProcess, Stage, condition, template
from support.waiting import eventually
from synergy_api import names
from synergy_kube import Conflict, NotFound
from synergy_kube.resources import NODES as NODE_RESOURCE
from synergy_kube.resources import PODS, SERVICES, TRAINING_JOBS, Resource

pytestmark = pytest.mark.integration

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)


async def test_a_gang_starts_together_follows_the_plan_and_leaves_at_its_lease_end(stage: Stage) -> None:
    await stage.submit(gpus=4, gpusPerWorker=2, preemption="Signal")
    await stage.phase("Queued")
    shares = [(NODES[0], 2, 5000, 16), (NODES[1], 2, 5000, 16)]
    held = await stage.grant(*shares, admitted=False)
    status = await stage.phase("Starting")
    pods = await eventually(lambda: two_pods(stage), seconds=10, what="two pods")
    assert [pod["spec"]["schedulingGates"] for pod in pods] == [[{"name": names.GATE}]] * 2
    assert condition(status, "Running")["reason"] == "WaitingForRoom"
    service = await stage.kube.get(SERVICES, "tj-job", stage.namespace)
    assert service["spec"]["clusterIP"] == "None"

    retuned = [share.model_copy(update={"cpu_millis": 4000}) for share in held.workers]
    held = held.model_copy(update={"admitted": True, "workers": retuned})
    await stage.allocate(held)
    bound = await stage.bind(2, run=1)
    assert {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in bound} == {"4"}, "before binding"
    assert {pod["metadata"]["annotations"][names.ANNOTATION_PLANNED_NODE] for pod in bound} == set(NODES)
    status = await stage.phase("Running")
    assert [worker["node"] for worker in status["workers"]] == list(NODES)
    assert status["service"]["runningSince"] == status["startTime"]

    smaller = [share.model_copy(update={"cpu_millis": 3000}) for share in held.workers]
    await stage.allocate(held.model_copy(update={"workers": smaller}))
    await stage.until("3 CPUs", lambda s: [worker["cpuMillis"] for worker in s["workers"]] == [3000, 3000])
    pod = await stage.kube.get(PODS, "job-1-0", stage.namespace)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "3"
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0

    await stage.revoke(held, lease_in=1)
    await stage.phase("Yielding")
    status = await stage.phase("Queued")
    service_status = status["service"]
    assert service_status["endedRun"] == 1
    assert service_status["preemptions"] == 1
    received = service_status["receivedSeconds"][held.gpu_type]
    assert service_status["attainedGPUSeconds"] == pytest.approx(4 * received, abs=0.01)
    await stage.gone("job-1-0")
    await stage.gone("job-1-1")
    await stage.told("LeaseOver")
    told = await stage.events()
    assert [reason for reason in told if reason in ("WorkersRunning", "Yielding", "LeaseOver")] == [
        "WorkersRunning",
        "Yielding",
        "LeaseOver",
    ]


async def two_pods(stage: Stage) -> list[dict[str, object]] | None:
    """The pods of run 1 once there are two."""
    pods = await stage.pods(1)
    return pods if len(pods) == 2 else None


async def test_a_job_succeeds_and_is_deleted_when_its_time_is_over(stage: Stage) -> None:
    message = '{"outcome": "finished", "step": 100, "checkpoint_step": 100}'
    await stage.submit(template=template(run_seconds="1", message=message), ttlSecondsAfterFinished=2)
    await stage.phase("Queued")
    await stage.grant((NODES[0], 1, 3000, 8))
    await stage.bind(1)
    status = await stage.phase("Succeeded")
    assert status["service"]["last"] == {
        "run": 1,
        "outcome": "Succeeded",
        "step": 100,
        "exitCode": 0,
        "reason": "WorkersSucceeded: run 1: all workers are done",
    }
    assert condition(status, "Finished")["status"] == "True"

    async def gone() -> bool:
        try:
            await stage.job()
        except NotFound:
            return True
        return False

    await eventually(gone, seconds=20, what="the job to be deleted")
    await stage.gone("job-1-0")


async def test_a_failed_run_is_counted_told_and_tried_again(stage: Stage) -> None:
    await stage.submit(template=template(run_seconds="0", exit_code="3"), backoffLimit=1)
    await stage.phase("Queued")
    await stage.grant((NODES[0], 1, 3000, 8))
    await stage.bind(1)
    job = await stage.until("a failure", lambda s: s.get("service", {}).get("failures") == 1)
    assert "worker 0 ended with exit code 3" in condition(job["status"], "Running")["message"]
    assert job["status"]["service"]["retryAt"]
    await stage.grant((NODES[0], 1, 3000, 8), run=2)
    await stage.bind(1, run=2)
    status = await stage.phase("Failed")
    assert condition(status, "Finished")["reason"] == "BackoffLimitExceeded"
    assert [pod["metadata"]["name"] for pod in await stage.pods()] == ["job-2-0"]


async def test_a_run_whose_checkpoint_takes_long_is_not_killed_while_it_writes_it(stage: Stage) -> None:
    """Its lease ended 100 s ago, as far as the operator can tell; its last checkpoint took 120 s."""
    await stage.submit(template=template(run_seconds="6", exit_code="75"), backoffLimit=0)
    await stage.phase("Queued")
    allocation = await stage.grant((NODES[0], 1, 3000, 8))
    progress = {"run": 1, "steps": 40, "checkpointSteps": 20, "saveSeconds": 120.0}
    await stage.kube.apply(
        TRAINING_JOBS, "job", {"status": {"progress": progress}}, stage.namespace, manager="tests", subresource="status"
    )
    await stage.bind(1)
    await stage.phase("Running")
    await stage.revoke(allocation, lease_in=-100.0)
    assert condition(await stage.phase("Yielding"), "Running")["reason"] == "Yielding"
    job = await stage.until("the run to end", lambda s: s.get("service", {}).get("endedRun") == 1)
    last = job["status"]["service"]["last"]
    assert (last["outcome"], last["exitCode"]) == ("Yielded", 75)
    assert last["reason"].startswith("WorkersLeft")


async def test_a_pod_deleted_behind_our_back_ends_the_run_as_no_failure(stage: Stage) -> None:
    await stage.submit(gpus=2, gpusPerWorker=1)
    await stage.phase("Queued")
    await stage.grant((NODES[0], 2, 6000, 16))
    await stage.bind(2)
    await stage.phase("Running")
    await stage.kube.delete(PODS, "job-1-1", stage.namespace, grace_seconds=0)
    status = await stage.phase("Queued")
    assert status["service"]["last"]["outcome"] == "Evicted"
    assert status["service"]["failures"] == 0
    assert await stage.pods() == []


async def test_a_lost_node_holds_the_run_until_it_is_out_of_service(stage: Stage) -> None:
    """The worker there may train on: the run ends once an administrator says that it does not."""
    pod = template(stop_seconds="600")  # the lost node's kubelet does not confirm the end
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    lost = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    pod["spec"]["tolerations"] = [{"key": key, **lost} for key in keys]
    await stage.submit(gpus=2, template=pod)
    await stage.phase("Queued")
    await stage.grant((NODES[0], 1, 3000, 8), (NODES[1], 1, 3000, 8))
    await stage.bind(2)
    await stage.phase("Running")
    at_once = {"metadata": {"annotations": {"kwok.kube-synergy.dev/stop-seconds": "0"}}}
    await stage.kube.merge_patch(PODS, "job-1-0", at_once, stage.namespace)  # the other node's does
    await fail_node(stage, NODES[1], "true")
    try:
        job = await stage.until("the fence to hold it", lambda s: _running_reason(s) == "NodeNotFenced", seconds=90)
        assert NODES[1] in condition(job["status"], "Running")["message"]
        assert job["status"]["service"].get("endedRun", 0) == 0
        await out_of_service(stage, NODES[1], True)
        status = await stage.phase("Queued", seconds=90)
    finally:
        await out_of_service(stage, NODES[1], False)
        await fail_node(stage, NODES[1], None)
    assert status["service"]["last"]["outcome"] == "Evicted"
    assert "worker 1 was lost" in condition(status, "Running")["message"]
    assert status["service"]["failures"] == 0
    assert await stage.pods() == []


def _running_reason(status: Json) -> str:
    return next((c["reason"] for c in status.get("conditions") or [] if c["type"] == "Running"), "")


async def out_of_service(stage: Stage, node: str, is_out: bool) -> None:
    """Say that nothing runs on the node any more, or take that back."""
    key = "node.kubernetes.io/out-of-service"
    for _ in range(10):
        found = await stage.kube.get(NODE_RESOURCE, node)
        taints = [taint for taint in found["spec"].get("taints") or [] if taint["key"] != key]
        taints += [{"key": key, "value": "nodeshutdown", "effect": "NoExecute"}] if is_out else []
        body = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "spec": {"taints": taints}}
        with suppress(Conflict):
            await stage.kube.merge_patch(NODE_RESOURCE, node, body)
            return
    raise AssertionError(f"{node} changes too often")


async def fail_node(stage: Stage, node: str, failed: str | None) -> None:
    """Let a fake node fail or recover."""
    annotations = {"kwok.kube-synergy.dev/fail": failed}
    await stage.kube.merge_patch(NODE_RESOURCE, node, {"metadata": {"annotations": annotations}})


async def test_the_quota_s_own_words_reach_the_user(stage: Stage) -> None:
    await stage.kube.create(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}, stage.namespace)
    await stage.submit()
    await stage.phase("Queued")

    async def counted() -> bool:
        quota = await stage.kube.get(QUOTAS, "none", stage.namespace)
        return "pods" in quota.get("status", {}).get("hard", {})

    await eventually(counted, seconds=20, what="the quota to be in force")
    await stage.grant((NODES[0], 1, 3000, 8))
    job = await stage.until("the run to end", lambda s: s.get("service", {}).get("endedRun") == 1)
    running = condition(job["status"], "Running")
    assert running["reason"] == "PodRefused"
    assert "exceeded quota" in running["message"]
    await stage.told("PodRefused")


async def test_a_resize_that_the_api_server_refuses_is_a_condition_and_no_loop(
    stage: Stage, operator: OperatorProcess
) -> None:
    await stage.submit()
    await stage.phase("Queued")
    held = await stage.grant((NODES[0], 1, 3000, 8))
    await stage.bind(1)
    await stage.phase("Running")
    huge = [held.workers[0].model_copy(update={"cpu_millis": 10**7})]
    await stage.allocate(held.model_copy(update={"workers": huge}))
    job = await stage.until(
        "the refusal", lambda s: condition(s, "ResourcesAsPlanned").get("reason") == "ResizeRefused"
    )
    assert job["status"]["phase"] == "Running"
    assert job["status"]["sizeLimits"]["maxCpuMillis"] == 3000, "what the plan is to keep within"
    assert operator.log.read_text().count("resize refused") == 1


async def test_a_bad_job_is_told_and_delays_no_other(stage: Stage) -> None:
    await stage.submit("huge", gpus=4096)
    await stage.submit("other", gpuTypes=["H100"])
    await stage.submit()
    await stage.phase("Queued")
    status = await stage.phase("Pending", name="huge")
    assert condition(status, "Valid")["reason"] == "TooManyGPUs"
    assert condition(await stage.phase("Pending", name="other"), "Valid")["reason"] == "UnknownGPUType"


async def test_a_suspended_job_waits_and_a_resumed_one_is_queued(stage: Stage) -> None:
    await stage.submit(suspend=True)
    await stage.phase("Suspended")
    await stage.kube.merge_patch(TRAINING_JOBS, "job", {"spec": {"suspend": False}}, stage.namespace)
    await stage.phase("Queued")


async def test_two_jobs_of_one_name_in_two_namespaces_keep_apart(stage: Stage) -> None:
    other = Stage(stage.kube, "default")
    await other.submit("twin")
    try:
        await stage.submit("twin")
        await stage.phase("Queued", name="twin")
        await other.phase("Queued", name="twin")
        await stage.grant((NODES[0], 1, 3000, 8), name="twin")
        await stage.bind(1)
        await stage.phase("Running", name="twin")
        assert (await other.job("twin"))["status"]["phase"] == "Queued"
    finally:
        await stage.kube.delete(TRAINING_JOBS, "twin", "default")


async def test_a_killed_operator_goes_on_where_it_was(stage: Stage, operator: OperatorProcess) -> None:
    await stage.submit(gpus=2, gpusPerWorker=1, template=template(run_seconds="4"))
    await stage.phase("Queued")
    await stage.grant((NODES[0], 2, 6000, 16))
    await eventually(lambda: two_pods(stage), seconds=10, what="two pods")
    await operator.end(signal.SIGKILL)
    assert not await operator.healthy()
    await operator.start()
    await stage.bind(2)
    await stage.phase("Running")
    await operator.end(signal.SIGKILL)
    await stage.ended()
    await operator.start()
    status = await stage.phase("Succeeded")
    assert status["service"]["receivedSeconds"][status["allocation"]["gpuType"]] == pytest.approx(4, abs=2)
    assert status["service"]["attainedGPUSeconds"] == pytest.approx(8, abs=4)
    assert status["service"]["run"] == 1


async def test_the_operator_ends_well_on_sigterm(operator: OperatorProcess) -> None:
    assert await operator.end(signal.SIGTERM) == 0
    await operator.start()
    assert await operator.healthy()


async def test_nothing_is_written_to_the_objects_but_what_the_operator_owns(stage: Stage) -> None:
    await stage.submit()
    await stage.phase("Queued")
    job = await stage.job()
    assert "finalizers" not in job["metadata"]
    assert "annotations" not in job["metadata"]
    managers = {entry["manager"] for entry in job["metadata"]["managedFields"] if entry.get("subresource") == "status"}
    assert managers == {names.MANAGER_OPERATOR}
