"""Leader election on a real Lease, hand-over between replicas, and what the leader says of the policy."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import synergy_devcluster
from support.extender.world import QUICK, Operator, Replica, replica
from support.programs import run
from support.waiting import eventually
from synergy_extender.leader import LeaderElection
from synergy_kube import KubeClient
from synergy_kube.resources import EVENTS, GPU_POOLS, LEASES, SCHEDULING_POLICIES

pytestmark = pytest.mark.integration


class Candidate:
    """One that tries for the lead; `offset` sets its clock."""

    def __init__(self, kube: KubeClient, namespace: str, name: str) -> None:
        self.offset = 0.0
        self.told: list[bool] = []
        self.election = LeaderElection(
            kube,
            (namespace, "contested"),
            name,
            QUICK,
            on_change=self.told.append,
            clock=lambda: time.monotonic() + self.offset,
        )
        self.task = asyncio.create_task(self.election.run())

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


def leads(candidate: Candidate) -> Callable[[], "asyncio.Future[bool]"]:
    async def probe() -> bool:
        return candidate.election.leading

    return probe  # type: ignore[return-value]


async def test_one_leads_and_another_takes_over_when_it_is_gone(kube: KubeClient, namespace: str) -> None:
    first = Candidate(kube, namespace, "first")
    await eventually(leads(first), seconds=5, what="the first to lead", every=0.05)
    second = Candidate(kube, namespace, "second")
    try:
        await asyncio.sleep(QUICK.retry_s * 4)
        assert (first.election.leading, second.election.leading) == (True, False)
        assert second.election.holder == "first"
        await first.stop()  # as if killed: it gives nothing back
        gone = time.monotonic()
        await eventually(leads(second), seconds=8, what="the second to lead", every=0.05)
        assert time.monotonic() - gone > QUICK.renew_s
        assert not first.election.leading
        lease = (await kube.get(LEASES, "contested", namespace))["spec"]
        assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("second", 1)
        assert second.told == [False, True], "first it was told that the leader is silent"
    finally:
        await first.stop()
        await second.stop()


async def test_one_that_gives_the_lead_back_is_followed_at_once(kube: KubeClient, namespace: str) -> None:
    first = Candidate(kube, namespace, "first")
    await eventually(leads(first), seconds=5, what="the first to lead", every=0.05)
    second = Candidate(kube, namespace, "second")
    try:
        first.task.cancel()
        await first.election.release()
        assert first.told == [True, False]
        await eventually(leads(second), seconds=QUICK.retry_s * 4, what="the second to lead", every=0.02)
    finally:
        await first.stop()
        await second.stop()


async def test_one_that_slept_does_not_believe_that_it_still_leads(kube: KubeClient, namespace: str) -> None:
    candidate = Candidate(kube, namespace, "sleeper")
    await eventually(leads(candidate), seconds=5, what="it to lead", every=0.05)
    candidate.offset = QUICK.renew_s + 0.1  # the process was stopped for so long
    assert not candidate.election.leading
    await candidate.stop()


async def test_a_second_replica_takes_over_and_goes_on_from_what_the_api_server_has(
    devcluster: synergy_devcluster.Cluster, operator: Operator, extender: Replica, home: str
) -> None:
    await operator.submit("before", gpus=1)
    held = await operator.allocation("before", state="Granted", admitted=True)
    async with replica(devcluster.kubeconfig, home, extender.authority, "extender-1") as other:
        assert not other.extender.election.leading
        await extender.extender.election.release()

        async def taken() -> bool:
            return other.extender.election.leading

        await eventually(taken, seconds=10, what="the other replica to lead", every=0.05)
        await operator.submit("after", gpus=1)
        await operator.allocation("after", state="Granted", admitted=True)
        assert (await operator.job("before"))["status"]["allocation"]["run"] == held["run"]
        async with extender.api() as api:
            assert (await api.get("/v1/plan")).status_code == 401

    async def back() -> bool:
        return extender.extender.election.leading

    await eventually(back, seconds=10, what="the first replica to lead again", every=0.05)


async def test_the_policy_says_that_it_is_in_force(extender: Replica, kube: KubeClient) -> None:
    async def condition() -> dict[str, str] | None:
        item = await kube.get(SCHEDULING_POLICIES, "default")
        conditions = (item.get("status") or {}).get("conditions") or []
        generation = item["metadata"]["generation"]
        return next((c for c in conditions if c.get("observedGeneration") == generation), None)

    told = await eventually(condition, seconds=10, what="the policy's condition")
    assert (told["type"], told["status"], told["reason"]) == ("Valid", "True", "InForce")
    assert extender.extender.loop.rounds.seconds == 5


async def test_pools_and_policies_that_are_of_no_use_say_so_in_condition_event_and_description(
    devcluster: synergy_devcluster.Cluster, extender: Replica, kube: KubeClient
) -> None:
    pool = {"gpuType": "V100", "nodeSelector": {"nobody/has": "this"}}
    await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "mine"}, "spec": {"policy": "srtf"}})
    await kube.create(GPU_POOLS, {"metadata": {"name": "nowhere"}, "spec": pool})
    wanted = {
        ("sp", "mine"): ("Ignored", "only the SchedulingPolicy named default is in force"),
        ("gp", "nowhere"): ("NoNodes", "no node carries the labels of spec.nodeSelector: correct spec.nodeSelector"),
    }
    try:
        for (kind, name), (reason, words) in wanted.items():

            async def told(kind: str = kind, name: str = name, reason: str = reason) -> str:
                text = " ".join((await run(devcluster, "kubectl", "describe", kind, name)).split())
                return text if f"Reason: {reason}" in text and f"Warning {reason}" in text else ""

            text = await eventually(told, seconds=20, what=f"the description of {kind} {name}")
            assert words in text
            assert "Status: False" in text
    finally:
        await kube.delete(SCHEDULING_POLICIES, "mine")
        await kube.delete(GPU_POOLS, "nowhere")


async def test_a_deleted_policy_is_missed_in_an_event(extender: Replica, kube: KubeClient) -> None:
    before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    known = {event["metadata"]["uid"] for event in await policy_events(kube)}
    await kube.delete(SCHEDULING_POLICIES, "default")
    try:

        async def missed() -> str:
            new = [event for event in await policy_events(kube) if event["metadata"]["uid"] not in known]
            return next((event["message"] for event in new if event["reason"] == "PolicyMissing"), "")

        message = await eventually(missed, seconds=20, what="an event of the missing policy")
        assert "plans follow the built-in one (2d-las, tune, rounds of 300 s): create a SchedulingPolicy" in message
    finally:
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": before})

        async def in_force() -> bool:
            return extender.extender.loop.rounds.seconds == before["roundSeconds"]

        await eventually(in_force, seconds=10, what="the policy to be in force again", every=0.02)


async def policy_events(kube: KubeClient) -> list[dict[str, Any]]:
    """The events of SchedulingPolicies."""
    found = await kube.list(EVENTS, "default", field_selector="involvedObject.kind=SchedulingPolicy")
    return list(found["items"])
