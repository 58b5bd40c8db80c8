"""Two TrainingJobs of one name in two namespaces: each is measured, runs and leaves by itself."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from support.on_cluster.jobs import GIB, fake_template, matrix, reaches, submit
from support.on_cluster.namespaces import fresh_namespace
from support.on_cluster.observer import Observer
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import JOBS, PODS, SCHEDULING_POLICIES, THROUGHPUT_PROFILES, TRAINING_JOBS

pytestmark = pytest.mark.integration

Json = dict[str, Any]
MEASURED = json.dumps(
    {"outcome": "measured", "steps_per_second": 8.0, "relative_error": 0.01, "max_rss_bytes": 1 << 28}
)
NAME = "same"


@pytest_asyncio.fixture
async def other(kube: KubeClient) -> AsyncIterator[str]:
    """A second namespace."""
    async with fresh_namespace(kube) as name:
        yield name


async def uids(kube: KubeClient, kind: Any, namespace: str) -> set[str]:
    """Of all objects of a kind that nobody has deleted."""
    items = (await kube.list(kind, namespace))["items"]
    return {item["metadata"]["uid"] for item in items if "deletionTimestamp" not in item["metadata"]}


async def are_measured_apart(kube: KubeClient, namespace: str, other: str) -> None:
    """Both are measured at the same time; one is deleted meanwhile, the other goes on and finishes."""
    for place in (namespace, other):
        template = fake_template(3)
        template["metadata"]["annotations"]["kwok.kube-synergy.dev/message"] = MEASURED
        template["spec"]["containers"][0]["args"] = [place]  # not identical: each is measured for itself
        profile = {"mode": "Auto", "cpuStep": "3"}
        await submit(kube, place, NAME, gpus=1, steps=10, gpuTypes=["T4"], profile=profile, template=template)

    async def both_are_measured() -> bool:
        return all([await uids(kube, JOBS, place) for place in (namespace, other)])

    await eventually(both_are_measured, seconds=60, what="both jobs to be measured")
    jobs = await uids(kube, JOBS, other)
    await kube.delete(TRAINING_JOBS, NAME, namespace)

    async def is_gone() -> bool:
        return not await uids(kube, JOBS, namespace) and not await uids(kube, PODS, namespace)

    await eventually(is_gone, seconds=60, what="what belonged to the deleted job to be gone")
    status = (await reaches(kube, other, NAME, "Succeeded", "Failed", seconds=120))["status"]
    assert (status["phase"], status["service"]["failures"]) == ("Succeeded", 0), status
    measured = (await kube.list(JOBS, other))["items"]
    assert jobs <= {job["metadata"]["uid"] for job in measured}
    assert {point["job"] for point in status["profile"]["points"]} == {job["metadata"]["name"] for job in measured}
    await kube.delete(THROUGHPUT_PROFILES, status["profile"]["fingerprint"])
    await kube.delete(TRAINING_JOBS, NAME, other)


async def run_apart(kube: KubeClient, namespace: str, other: str) -> None:
    """Both run; one is held and goes on later, the other keeps its pod, and its lease is renewed."""
    curve = {1000: 1.0, 3000: 1.0}
    profile = {"mode": "Provided", "matrices": [matrix("T4", curve, GIB)]}
    template = fake_template(3600)
    template["spec"]["terminationGracePeriodSeconds"] = 0
    for place in (namespace, other):
        await submit(
            kube,
            place,
            NAME,
            gpus=1,
            steps=10,
            gpuTypes=["T4"],
            preemption="Signal",
            profile=profile,
            template=template,
        )
    before = [await reaches(kube, place, NAME, "Running", seconds=60) for place in (namespace, other)]
    pods = await uids(kube, PODS, other)
    assert len(pods) == 1
    await kube.merge_patch(TRAINING_JOBS, NAME, {"spec": {"suspend": True}}, namespace)
    await reaches(kube, namespace, NAME, "Suspended", seconds=60)

    async def planned() -> int:
        policy = await kube.get(SCHEDULING_POLICIES, "default")
        return int(policy["status"]["inForce"].get("round", 0))

    first = await planned()

    async def later_round() -> bool:
        return await planned() > first + 1

    await eventually(later_round, seconds=60, what="two rounds to be planned")
    kept = (await kube.get(TRAINING_JOBS, NAME, other))["status"]["allocation"]
    assert (kept["run"], kept["state"]) == (before[1]["status"]["allocation"]["run"], "Granted")
    await kube.merge_patch(TRAINING_JOBS, NAME, {"spec": {"suspend": False}}, namespace)

    async def runs_again() -> bool:
        status = (await kube.get(TRAINING_JOBS, NAME, namespace))["status"]
        return bool(status["phase"] == "Running" and status["service"]["run"] == 2)

    await eventually(runs_again, seconds=60, what="the job that was held to run again")
    status = (await kube.get(TRAINING_JOBS, NAME, other))["status"]
    assert (status["phase"], status["service"]["run"], status["service"]["preemptions"]) == ("Running", 1, 0)
    assert await uids(kube, PODS, other) == pods


@pytest.mark.timeout(400)
async def test_two_jobs_of_one_name_in_two_namespaces_have_nothing_to_do_with_each_other(
    kube: KubeClient, namespace: str, other: str, pools: None, policy: Callable[..., Awaitable[None]]
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=5)
    async with Observer(kube) as observer:
        await are_measured_apart(kube, namespace, other)
        await run_apart(kube, namespace, other)
    assert observer.broken == []
