"""A policy over several GPU types on a cluster: prices, deadlines, and who is told what."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from support.extender.world import GIB, Object, Operator, Replica
from support.on_cluster.jobs import matrix
from support.on_cluster.neighbours import label
from support.waiting import eventually
from synergy_api.timestamps import format_time
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, SCHEDULING_POLICIES

pytestmark = pytest.mark.integration

V100, T4 = "Tesla-V100-SXM2-16GB", "Tesla-T4"
NODES = {V100: "fake-v100-021", T4: "fake-t4-021"}
PRICES = {V100: 4.0, T4: 1.0}
HOUR = 3600.0
Follow = Callable[..., Awaitable[Object]]


@pytest_asyncio.fixture
async def follow(kube: KubeClient, extender: Replica) -> AsyncIterator[Follow]:
    """Set the policy, and wait until its status says this of the condition; the status."""

    async def to(reason: str, **spec: Any) -> Object:
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": spec})

        async def said() -> Object | None:
            policy = await kube.get(SCHEDULING_POLICIES, "default")
            status: Object = policy.get("status") or {}
            current = [
                condition["reason"]
                for condition in status.get("conditions", [])
                if condition.get("observedGeneration") == policy["metadata"]["generation"]
            ]
            return status if current == [reason] else None

        return await eventually(said, seconds=20, what=f"{reason} of {spec}", every=0.05)

    yield to
    await to("InForce", policy="fifo", roundSeconds=5)


@pytest_asyncio.fixture
async def two_types(kube: KubeClient) -> AsyncIterator[None]:
    """A fake node of each type for this test's jobs alone, in pools without a price."""
    await label(kube, list(NODES.values()), pool="gpu-types")
    yield
    await label(kube, list(NODES.values()), pool=None)


async def price(kube: KubeClient, prices: dict[str, float]) -> None:
    """What the cluster's GPUs cost; all types of it, or the cost policies do not know where they are."""
    types = {"A100": "NVIDIA-A100-SXM4-40GB", "V100": V100, "T4": T4}
    for name, product in types.items():
        spec = {
            "gpuType": product,
            "nodeSelector": {"nvidia.com/gpu.product": product},
            "pricePerHour": prices.get(product, 100.0),
        }
        await kube.apply(GPU_POOLS, name.lower(), {"spec": spec}, manager="tests")


def job(operator: Operator, speeds: dict[str, float], **more: Any) -> Object:
    template = operator.only_on("any")
    template["spec"]["nodeSelector"] = {"pool": "gpu-types"}
    matrices = [matrix(gpu_type, {8000: speed}, 8 * GIB) for gpu_type, speed in speeds.items()]
    return {
        "gpus": 8,
        "gpuTypes": list(speeds),
        "steps": 3600,
        "profile": {"mode": "Provided", "matrices": matrices},
        "template": template,
        **more,
    }


@pytest.mark.usefixtures("everything_allowed")
async def test_cost_and_deadlines_decide_who_runs_where_and_everybody_hears_why(
    kube: KubeClient, operator: Operator, follow: Follow, two_types: None
) -> None:
    """Two jobs are cheaper on a T4, and there is one; a third is in a hurry; a fourth can only be late."""
    await follow("InForce", policy="fifo", roundSeconds=3600)
    status = await follow("PriceMissing", policy="min-cost-slo")
    assert status["inForce"]["policy"] == "fifo", "what goes without prices serves"
    await price(kube, PRICES)
    try:
        status = await follow("InForce", policy="min-cost-slo")
        assert status["inForce"]["policy"] == "min-cost-slo"
        now = time.time()
        cheap = job(operator, {V100: 2.0, T4: 1.0})
        await operator.submit("cheap", **cheap)
        assert (await operator.allocation("cheap", state="Granted"))["gpuType"] == T4
        await operator.submit("patient", **cheap)
        assert (await operator.queue("patient"))["reason"] == "NotWorthItsPrice"
        due = {"slo": {"deadline": format_time(now + 0.7 * HOUR)}}
        await operator.submit("urgent", **cheap, **due)
        assert (await operator.allocation("urgent", state="Granted"))["gpuType"] == V100
        await operator.submit("hopeless", **job(operator, {V100: 2.0}, slo={"deadline": format_time(now + 60)}))

        async def late() -> Object | None:
            found: Object | None = (await operator.job("hopeless"))["status"].get("late")
            return found

        assert (await eventually(late, seconds=20, what="the hopeless job to be told"))["reason"] == "DeadlineTooTight"
        assert "late" not in (await operator.job("urgent"))["status"]
    finally:
        for name in ("a100", "v100", "t4"):
            await kube.delete(GPU_POOLS, name)


async def test_a_type_without_a_matrix_is_estimated_until_it_was_measured(
    kube: KubeClient, operator: Operator, follow: Follow, two_types: None
) -> None:
    """The only job with both matrices is half as fast on V100s; so the other is taken to be."""
    await follow("InForce", policy="max-throughput", roundSeconds=3600)
    await operator.submit("known", **job(operator, {V100: 2.0, T4: 4.0}))
    assert (await operator.allocation("known", state="Granted"))["gpuType"] == T4
    named = {**job(operator, {T4: 6.0}), "gpuTypes": [V100, T4]}
    await operator.submit("new", **named)
    place = await operator.allocation("new", state="Granted")
    assert (place["gpuType"], place["estimated"], place["stepsPerSecond"]) == (V100, True, pytest.approx(3.0))
    assert (await operator.job("new"))["status"]["estimates"] == [{"gpuType": V100, "stepsPerSecond": 3.0}]
    measured = {"gpuType": V100, "stepsPerSecond": 2.5, "reports": 5, "estimatedStepsPerSecond": 3.0}
    await operator.write("new", progress={"measured": [measured]})

    async def measured_only() -> bool:
        return "estimates" not in (await operator.job("new"))["status"]

    await eventually(measured_only, seconds=20, what="the estimate to go")


async def test_who_runs_the_same_program_stands_for_a_job_on_a_type_that_it_was_not_measured_on(
    kube: KubeClient, operator: Operator, follow: Follow, two_types: None
) -> None:
    """Both others are half as fast on V100s; the one that differs from the new job in its batch alone is twice as."""
    await follow("InForce", policy="max-throughput", roundSeconds=3600)
    await operator.submit("other", **job(operator, {V100: 2.0, T4: 4.0}))
    await operator.submit("another", **job(operator, {V100: 3.0, T4: 6.0}))
    await operator.submit("alike", **_training("bert", 64, job(operator, {V100: 4.0, T4: 2.0})))
    for name, program, speed in (("new", "bert", 6.0), ("unknown", "vgg", 1.5)):
        named = {**job(operator, {T4: 3.0}), "gpuTypes": [V100, T4]}
        await operator.submit(name, **_training(program, 32, named))
        wanted = [{"gpuType": V100, "stepsPerSecond": pytest.approx(speed)}]

        async def told(name: str = name, wanted: list[Object] = wanted) -> bool:
            return (await operator.job(name)).get("status", {}).get("estimates") == wanted

        await eventually(told, seconds=20, what=f"the estimate of {name}")


def _training(program: str, batch: int, spec: Object) -> Object:
    """The job, with a program that has its batch among its arguments."""
    spec["template"]["spec"]["containers"][0]["args"] = [f"--model={program}", f"--batch={batch}"]
    return {**spec, "batchSize": batch}
