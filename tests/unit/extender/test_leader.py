"""Leader election where writes cross; the rest of it is tested on a real API server."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from support.waiting import eventually
from synergy_extender.leader import LeaderElection, Timing
from synergy_kube import Conflict, KubeClient

QUICK = Timing(lease_s=3.0, renew_s=2.0, retry_s=0.05)


class SlowLease:
    """One Lease with the API server's rule that a write from an old version is refused; writes wait for `gate`."""

    def __init__(self) -> None:
        self.spec: dict[str, Any] = {}
        self.version = 1
        self.gate = asyncio.Event()
        self.writing = 0

    async def get(self, *_: object) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": str(self.version)}, "spec": dict(self.spec)}

    async def replace(self, _: object, __: str, lease: dict[str, Any], ___: str) -> dict[str, Any]:
        self.writing += 1
        await self.gate.wait()
        self.writing -= 1
        if lease["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(409, "Conflict", "the object has been modified")
        self.version, self.spec = self.version + 1, lease["spec"]
        return await self.get()


@dataclass
class Follower:
    """One that would lead, and each pair of `near` and `leading` that it was told to look at, with the time."""

    election: LeaderElection
    told: list[tuple[bool, bool, float]]


@asynccontextmanager
async def following(lease: SlowLease) -> AsyncIterator[Follower]:
    def note(leading: bool) -> None:
        told.append((election.near, leading, time.monotonic()))

    told: list[tuple[bool, bool, float]] = []
    timing = Timing(lease_s=3.0, renew_s=2.0, retry_s=0.4)
    election = LeaderElection(cast(KubeClient, lease), ("ns", "lease"), "me", timing, on_change=note)
    running = asyncio.create_task(election.run())
    try:
        yield Follower(election, told)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_silent_leader_is_noticed_after_half_of_its_lease_and_followed_at_its_end() -> None:
    lease = SlowLease()
    lease.gate.set()
    lease.spec = {"holderIdentity": "other", "leaseDurationSeconds": 1}
    begun = time.monotonic()
    async with following(lease) as follower:

        async def leads() -> bool:
            return follower.election.leading

        await eventually(leads, seconds=5, what="it to lead", every=0.01)
    assert [(near, leading) for near, leading, _ in follower.told] == [(True, False), (False, True)]
    noticed, led = (at - begun for *_, at in follower.told)
    assert noticed >= 0.5
    assert led >= 1.0


async def test_a_leader_that_is_heard_again_is_no_longer_silent() -> None:
    lease = SlowLease()
    lease.gate.set()
    lease.spec = {"holderIdentity": "other", "leaseDurationSeconds": 2}
    async with following(lease) as follower:

        async def told_once() -> bool:
            return len(follower.told) == 1

        async def told_twice() -> bool:
            return len(follower.told) == 2

        await eventually(told_once, seconds=5, what="its silence", every=0.01)
        lease.version += 1
        await eventually(told_twice, seconds=5, what="its return", every=0.01)
        assert not follower.election.near
    assert [(near, leading) for near, leading, _ in follower.told] == [(True, False), (False, False)]


async def test_one_that_cannot_reach_the_api_server_does_not_take_the_leader_for_silent() -> None:
    class Away(SlowLease):
        async def get(self, *_: object) -> dict[str, Any]:
            if self.away:
                raise TimeoutError
            return await super().get()

        away = False

    lease = Away()
    lease.spec = {"holderIdentity": "other", "leaseDurationSeconds": 1}
    async with following(lease) as follower:

        async def looked() -> bool:
            return follower.election.holder == "other"

        await eventually(looked, seconds=5, what="a look", every=0.01)
        lease.away = True
        await asyncio.sleep(1.5)
        assert not follower.election.near
    assert follower.told == []


async def test_a_lead_that_is_given_back_during_a_renewal_is_given_back() -> None:
    lease = SlowLease()
    lease.gate.set()
    election = LeaderElection(cast(KubeClient, lease), ("ns", "lease"), "me", QUICK, on_change=lambda _: None)
    running = asyncio.create_task(election.run())

    async def leads() -> bool:
        return election.leading

    async def renewing() -> bool:
        return lease.writing == 1

    await eventually(leads, seconds=5, what="it to lead", every=0.01)
    lease.gate.clear()
    await eventually(renewing, seconds=5, what="a renewal to be on its way", every=0.01)
    release = asyncio.create_task(election.release())
    await asyncio.sleep(0)
    assert not election.leading
    lease.gate.set()
    await release
    assert lease.spec["holderIdentity"] == ""
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
