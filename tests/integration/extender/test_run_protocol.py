"""A run from wish to release, through the real API server and kube-scheduler, on fake nodes."""

import asyncio
import json
import time

import pytest

from support.extender.world import GIB, Operator, Replica
from support.waiting import eventually
from synergy_api import names
from synergy_api.timestamps import format_time, parse_time
from synergy_kube.resources import NODES, PODS, SCHEDULING_POLICIES, TRAINING_JOBS

pytestmark = pytest.mark.integration


async def test_a_queued_job_is_granted_bound_where_planned_kept_and_released(
    operator: Operator, kube_scheduler: object
) -> None:
    started = time.monotonic()
    await operator.submit("one", gpus=2)
    granted = await operator.allocation("one", state="Granted", admitted=True)
    assert time.monotonic() - started < 3
    assert (granted["run"], granted["purpose"], sum(s["gpus"] for s in granted["workers"])) == (1, "Train", 2)
    (pod,) = await operator.start("one", granted)
    bound = await operator.bound(pod["metadata"]["name"])
    assert bound["spec"]["nodeName"] == granted["workers"][0]["node"]
    assert json.loads(bound["metadata"]["annotations"][names.ANNOTATION_BOUND]) == {
        "run": 1,
        "round": granted["round"],
    }
    assert time.monotonic() - started < 5

    await operator.write("one", phase="Running", service={"run": 1, "runningSince": format_time(time.time())})

    async def planned_again() -> bool:
        policy = await operator.kube.get(SCHEDULING_POLICIES, "default")
        return int(policy["status"]["inForce"].get("round", 0)) > int(granted["round"]) + 1

    await eventually(planned_again, seconds=15, what="two rounds more to be planned")
    assert (await operator.job("one"))["status"]["allocation"] == granted, "nothing is written of a run that stays"

    await operator.kube.delete(PODS, pod["metadata"]["name"], operator.namespace, grace_seconds=0)
    last = {"run": 1, "outcome": "Succeeded", "step": 1000}
    await operator.write("one", phase="Succeeded", service={"run": 1, "endedRun": 1, "last": last})
    released = await operator.allocation("one", state="Released")
    assert "workers" not in released

    async def repaired() -> bool:
        return bool((await operator.job("one"))["status"].get("progress", {}).get("steps") == 1000)

    await eventually(repaired, seconds=10, what="the progress to say what the run left")


async def test_a_gang_over_two_nodes_is_bound_whole(operator: Operator, kube_scheduler: object) -> None:
    await operator.submit("gang", gpus=16)
    granted = await operator.allocation("gang", state="Granted", admitted=True)
    assert len(granted["workers"]) == 2
    pods = await operator.start("gang", granted)
    nodes = [(await operator.bound(pod["metadata"]["name"]))["spec"]["nodeName"] for pod in pods]
    assert nodes == [share["node"] for share in granted["workers"]]


async def test_at_a_rounds_end_who_must_leave_is_told_and_who_enters_waits_for_the_room(
    operator: Operator, kube_scheduler: object
) -> None:
    template = operator.only_on("fake-t4-000")
    await operator.submit("earlier", gpus=8, template=template, status={"phase": "Pending"})
    await operator.submit("later", gpus=8, template=template)
    held = await operator.allocation("later", state="Granted", admitted=True)
    (pod,) = await operator.start("later", held)
    await operator.bound(pod["metadata"]["name"])
    await operator.write("later", phase="Running", service={"run": 1, "runningSince": format_time(time.time())})
    await operator.write("earlier", phase="Queued")  # first in, first out serves it first
    told = await operator.allocation("later", state="Revoked")
    boundary = parse_time(told["leaseUntil"])
    assert boundary % 5 == 0
    assert "GPUs" in told["reason"]
    entering = await operator.allocation("earlier", state="Granted")
    assert entering["admitted"] is False
    await asyncio.sleep(max(0.0, boundary + 1 - time.time()))
    assert (await operator.job("earlier"))["status"]["allocation"]["admitted"] is False
    await operator.kube.delete(PODS, pod["metadata"]["name"], operator.namespace, grace_seconds=0)
    service = {"run": 1, "endedRun": 1, "last": {"run": 1, "outcome": "Yielded", "step": 10}}
    await operator.write("later", phase="Queued", service=service)
    await operator.allocation("earlier", state="Granted", admitted=True)
    queue = await operator.queue("later")
    assert (queue["position"] >= 1, queue["reason"]) == (True, "NoFreeGPU")


async def test_an_admitted_run_without_pods_gives_its_gpus_to_others(
    operator: Operator, rounds_of_an_hour: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator is away, or cannot make the pods. Nobody else renews or ends the run."""
    template = operator.only_on("fake-t4-003")
    await operator.submit("stuck", gpus=8, template=template)
    await operator.allocation("stuck", state="Granted", admitted=True)
    await operator.submit("other", gpus=8, template=template)
    assert (await operator.queue("other"))["position"] >= 1
    monkeypatch.setattr("synergy_extender.decisions.protocol.NOT_STARTED_SECONDS", 2.0)
    revoked = await operator.allocation("stuck", state="Revoked")
    assert revoked["reason"].startswith("PodsNotStarted: run 1 was given back: none of its pods was bound")
    other = await operator.allocation("other", state="Granted", admitted=True)
    (pod,) = await operator.start("other", other)
    monkeypatch.undo()
    assert (await operator.job("stuck"))["status"]["allocation"]["state"] == "Revoked"
    await operator.kube.delete(PODS, pod["metadata"]["name"], operator.namespace, grace_seconds=0)


async def test_a_suspended_job_is_told_to_leave_at_once(operator: Operator) -> None:
    await operator.submit("held")
    await operator.allocation("held", state="Granted")
    await operator.kube.merge_patch(TRAINING_JOBS, "held", {"spec": {"suspend": True}}, operator.namespace)
    revoked = await operator.allocation("held", state="Revoked")
    assert parse_time(revoked["leaseUntil"]) <= time.time() + 0.1
    assert "suspend" in revoked["reason"]


async def test_pods_of_others_are_counted_and_never_displaced(operator: Operator, kube_scheduler: object) -> None:
    node = "fake-t4-001"
    other = operator.worker("x", 1, 0, {"node": node, "gpus": 7, "cpuMillis": 1000, "memoryBytes": GIB})
    other["metadata"] = {"name": "foreign"}
    other["spec"]["schedulerName"] = "default-scheduler"
    await operator.kube.create(PODS, other, operator.namespace)
    await operator.bound("foreign")
    template = operator.only_on(node)
    await operator.submit("large", gpus=2, template=template, placement="Consolidate")
    assert (await operator.queue("large"))["position"] >= 1
    await operator.submit("small", gpus=1, template=template)
    assert (await operator.allocation("small", state="Granted"))["workers"][0]["node"] == node
    await operator.kube.delete(PODS, "foreign", operator.namespace, grace_seconds=0)
    await operator.allocation("large", state="Granted", admitted=True)


async def test_a_pod_that_is_no_worker_is_refused_with_words_that_help(
    operator: Operator, kube_scheduler: object
) -> None:
    stray = operator.worker("nobody", 1, 0, {"node": "fake-t4-002", "gpus": 1, "cpuMillis": 1000, "memoryBytes": GIB})
    stray["metadata"] = {"name": "stray"}
    await operator.kube.create(PODS, stray, operator.namespace)

    async def refused() -> str:
        pod = await operator.kube.get(PODS, "stray", operator.namespace)
        conditions = {c["type"]: c for c in pod["status"].get("conditions") or []}
        return str(conditions.get("PodScheduled", {}).get("message", ""))

    message = await eventually(refused, seconds=20, what="the pod to be refused")
    assert "set spec.schedulerName to default-scheduler" in message
    assert "nodeName" not in (await operator.kube.get(PODS, "stray", operator.namespace))["spec"]


async def test_a_worker_is_refused_where_a_foreign_pod_was_faster(
    operator: Operator, extender: Replica, kube_scheduler: object, rounds_of_an_hour: None
) -> None:
    await operator.submit("slow", gpus=8, template=operator.only_on("fake-v100-004"))
    granted = await operator.allocation("slow", state="Granted", admitted=True)
    share = granted["workers"][0]
    thief = operator.worker("x", 1, 0, {**share, "gpus": 1, "cpuMillis": 1000, "memoryBytes": GIB})
    thief["metadata"] = {"name": "thief"}
    thief["spec"]["schedulerName"] = "default-scheduler"
    await operator.kube.create(PODS, thief, operator.namespace)
    await operator.bound("thief")
    (pod,) = await operator.start("slow", granted)
    name = pod["metadata"]["name"]

    async def unschedulable() -> bool:
        item = await operator.kube.get(PODS, name, operator.namespace)
        conditions = {c["type"]: c for c in item["status"].get("conditions") or []}
        return bool(conditions.get("PodScheduled", {}).get("status") == "False")

    await eventually(unschedulable, seconds=20, what="the worker to be refused")
    await operator.kube.delete(PODS, "thief", operator.namespace, grace_seconds=0)
    assert (await operator.bound(name, seconds=30))["spec"]["nodeName"] == share["node"]


async def test_a_node_that_is_cordoned_gets_nothing_new(operator: Operator) -> None:
    node = "fake-t4-003"
    await operator.kube.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
    try:
        await operator.submit("job", template=operator.only_on(node))
        assert (await operator.queue("job"))["reason"] == "NoAllowedNode"
    finally:
        await operator.kube.merge_patch(NODES, node, {"spec": {"unschedulable": None}})
    await operator.allocation("job", state="Granted", admitted=True)
