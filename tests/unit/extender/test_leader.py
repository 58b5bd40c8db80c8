"""Leader election where writes cross; the rest of it is tested on a real API server."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.waiting import eventually
from synergy_extender import leader
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
        return self._shown()

    def _shown(self) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": str(self.version)}, "spec": dict(self.spec)}

    async def replace(self, _: object, __: str, lease: dict[str, Any], ___: str) -> dict[str, Any]:
        self.writing += 1
        await self.gate.wait()
        self.writing -= 1
        if lease["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(409, "Conflict", "the object has been modified")
        self.version, self.spec = self.version + 1, lease["spec"]
        return self._shown()


class Stage:
    """An election that sleeps without waiting: its clock goes on by what it sleeps, and by what a test says."""

    def __init__(self, lease: SlowLease, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self.told: list[tuple[bool, bool]] = []
        """Whether the leader was silent, and whether this one led, each time that it was told to look."""
        self.until: Callable[[], bool] = lambda: False
        self.reached = asyncio.Event()
        timing = Timing(lease_s=3.0, renew_s=2.0, retry_s=0.4)
        self.election = LeaderElection(
            cast(KubeClient, lease), ("ns", "lease"), "me", timing, on_change=self._note, clock=lambda: self.now
        )
        monkeypatch.setattr(leader, "asyncio", SimpleNamespace(timeout=asyncio.timeout, sleep=self._sleep))

    def _note(self, leading: bool) -> None:
        self.told.append((self.election.near, leading))

    async def _sleep(self, seconds: float) -> None:
        if self.until():
            self.reached.set()
            await asyncio.Event().wait()
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def run(self, until: Callable[[], bool]) -> None:
        """Until it sleeps and this is so."""
        self.until = until
        self.reached.clear()
        task = asyncio.create_task(self.election.run())
        try:
            await asyncio.wait_for(self.reached.wait(), 10)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def held_by_other(seconds: int) -> SlowLease:
    lease = SlowLease()
    lease.gate.set()
    lease.spec = {"holderIdentity": "other", "leaseDurationSeconds": seconds}
    return lease


async def test_a_silent_leader_is_noticed_after_half_of_its_lease_and_followed_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(held_by_other(1), monkeypatch)
    await stage.run(lambda: stage.election.leading)
    assert stage.told == [(True, False), (False, True)]
    assert stage.slept == pytest.approx([0.4, 0.4, 0.2])


async def test_a_leader_that_is_heard_again_is_no_longer_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = held_by_other(2)
    stage = Stage(lease, monkeypatch)
    await stage.run(lambda: stage.election.near)
    lease.version += 1
    await stage.run(lambda: not stage.election.near)
    assert stage.told == [(True, False), (False, False)]


async def test_one_that_cannot_reach_the_api_server_does_not_take_the_leader_for_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease = held_by_other(1)
    stage = Stage(lease, monkeypatch)
    await stage.run(lambda: bool(stage.election.holder))

    async def away(*_: object) -> dict[str, Any]:
        raise TimeoutError

    monkeypatch.setattr(lease, "get", away)
    await stage.run(lambda: len(stage.slept) > 10)
    assert stage.told == []


async def test_a_lead_that_ran_out_during_a_slow_renewal_is_told_as_lost_and_as_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease = SlowLease()
    lease.gate.set()
    stage = Stage(lease, monkeypatch)
    await stage.run(lambda: stage.election.leading)
    real = lease.replace

    async def slow(*args: Any) -> dict[str, Any]:
        stage.now += 1.9
        return await real(*args)

    monkeypatch.setattr(lease, "replace", slow)
    stage.now += 0.4
    await stage.run(lambda: True)
    assert stage.told == [(False, True), (False, False), (False, True)]


async def test_a_renewal_that_fails_is_tried_again_before_the_lead_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = SlowLease()
    lease.gate.set()
    stage = Stage(lease, monkeypatch)
    await stage.run(lambda: stage.election.leading)
    real, failures = lease.replace, iter([True, True])

    async def away(*args: Any) -> dict[str, Any]:
        if next(failures, False):
            stage.now += 0.6
            raise TimeoutError
        return await real(*args)

    monkeypatch.setattr(lease, "replace", away)
    version = lease.version
    await stage.run(lambda: lease.version > version)
    assert stage.slept == [0.2, 0.2]
    assert stage.told == [(False, True)]


async def test_a_leader_renews_without_a_read_until_somebody_else_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = SlowLease()
    lease.gate.set()
    stage = Stage(lease, monkeypatch)
    await stage.run(lambda: stage.election.leading)
    reads: list[int] = []
    real = lease.get

    async def counted(*args: Any) -> dict[str, Any]:
        reads.append(lease.version)
        return await real(*args)

    monkeypatch.setattr(lease, "get", counted)
    version = lease.version
    await stage.run(lambda: lease.version >= version + 3)
    assert reads == []
    lease.version += 1
    await stage.run(lambda: lease.version >= version + 5)
    assert stage.election.leading
    assert len(reads) == 1


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
