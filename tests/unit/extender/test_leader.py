"""Leader election where writes cross; the rest of it is tested on a real API server."""

import asyncio
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
