"""Another policy or mechanism while jobs run: the next round follows it, and nobody is restarted for it."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from support.extender.world import GIB, Object, Operator
from support.on_cluster.jobs import matrix
from support.waiting import eventually
from synergy_api.timestamps import format_time, parse_time
from synergy_kube import KubeClient
from synergy_kube.resources import SCHEDULING_POLICIES

pytestmark = pytest.mark.integration

T4 = "Tesla-T4"
Switch = Callable[..., Awaitable[None]]


@pytest_asyncio.fixture
async def switch(kube: KubeClient, five_second_rounds: None) -> AsyncIterator[Switch]:
    """Change the policy, and wait until its status says that plans follow it."""

    async def to(**spec: Any) -> None:
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": spec})

        async def followed() -> bool:
            status = (await kube.get(SCHEDULING_POLICIES, "default")).get("status") or {}
            return {**(status.get("inForce") or {}), **spec} == status.get("inForce")

        await eventually(followed, seconds=20, what=f"{spec} to be in force", every=0.05)

    yield to
    await to(policy="fifo", mechanism="tune")


async def start(operator: Operator, name: str, **service: Any) -> Object:
    """The job's first run, running; its allocation."""
    granted = await operator.allocation(name, state="Granted", admitted=True)
    for pod in await operator.start(name, granted):
        await operator.bound(pod["metadata"]["name"])
    since = format_time(time.time())
    await operator.write(name, phase="Running", service={"run": 1, "runningSince": since, **service})
    return granted


async def test_the_next_round_follows_another_mechanism_and_another_policy(
    operator: Operator, switch: Switch, kube_scheduler: object
) -> None:
    profile = {"mode": "Provided", "matrices": [matrix(T4, {1000: 1.0, 2000: 2.0}, GIB)]}
    await operator.submit("kept", gpus=4, template=operator.only_on("fake-t4-005"), profile=profile)
    tuned = await start(operator, "kept")
    assert tuned["workers"][0]["cpuMillis"] == 2000, "what it needs"
    full = operator.only_on("fake-t4-006")
    await operator.submit("first", gpus=8, template=full)
    await start(operator, "first", attainedGPUSeconds=1e6)
    await operator.submit("second", gpus=8, template=full)
    assert (await operator.queue("second"))["reason"] == "NoFreeGPU"

    await switch(mechanism="proportional")

    async def proportional() -> Object | None:
        allocation: Object = (await operator.job("kept"))["status"]["allocation"]
        return allocation if allocation["workers"][0]["cpuMillis"] == 12_000 else None

    allocation = await eventually(proportional, seconds=20, what="half of the node's CPU", every=0.05)
    assert (allocation["run"], allocation["state"]) == (1, "Granted")
    assert (await operator.job("first"))["status"]["allocation"]["state"] == "Granted", "first in, first out still"

    await switch(policy="las")
    entering = await operator.allocation("second", state="Granted")
    assert entering["admitted"] is False
    leaving = await operator.allocation("first", state="Revoked")
    assert parse_time(leaving["leaseUntil"]) % 5 == 0, "not before the round's end"
    kept = (await operator.job("kept"))["status"]["allocation"]
    assert (kept["run"], kept["state"], kept["workers"]) == (1, "Granted", allocation["workers"])
