"""Whose token is reviewed next when many are sent."""

import asyncio

import pytest

from synergy_extender.leases import review_turns
from synergy_extender.leases.review_turns import PEER_BURST, SLOTS, Bucket, BusyError, Lane, PeerBuckets, ReviewTurns


class Crowd:
    """Turns that end when the test says so, and a clock of the test's own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = ReviewTurns(lambda: self.now)
        self.inside: list[str] = []
        self.busy = 0
        self.end = asyncio.Event()

    async def ask(self, lane: Lane, peer: str, pod_uid: str = "", label: str = "") -> None:
        try:
            async with self.turns.turn(lane, peer, pod_uid):
                self.inside.append(label or peer)
                await self.end.wait()
        except BusyError:
            self.busy += 1


@pytest.fixture
async def crowd() -> Crowd:
    return Crowd()


async def settle() -> None:
    """Let everybody go as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_each_lane_has_slots_of_its_own(crowd: Crowd) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(40):
            for lane in (Lane.UNKNOWN, Lane.WORKER, Lane.PERSON):
                uid = f"pod-{number}" if lane is Lane.WORKER else ""
                group.create_task(crowd.ask(lane, f"10.0.0.{number}", uid, lane))
        await settle()
        assert {lane: crowd.inside.count(lane) for lane in SLOTS} == {**SLOTS, Lane.RENEWAL: 0}
        group.create_task(crowd.ask(Lane.RENEWAL, "10.0.0.0", label="renewal"))
        await settle()
        assert crowd.inside[-1] == "renewal", "a token that was accepted before waits for none of them"
        crowd.end.set()


async def test_one_review_of_a_pod_at_a_time_and_one_place_for_each_address(crowd: Crowd) -> None:
    """Whoever knows a pod's UID gets in front of its worker once for each address that they send from."""
    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(crowd.ask(Lane.WORKER, "10.6.6.6", "pod-a", "flood"))
        await settle()
        assert (crowd.inside, crowd.busy) == (["flood"], 49)
        group.create_task(crowd.ask(Lane.WORKER, "10.0.0.1", "pod-a", "worker"))
        group.create_task(crowd.ask(Lane.WORKER, "10.0.0.2", "pod-b", "worker of another pod"))
        await settle()
        assert crowd.inside == ["flood", "worker of another pod"]
        crowd.end.set()
    assert crowd.inside[2:] == ["worker"]


async def test_an_address_asks_no_oftener_than_its_bucket_lets_it(crowd: Crowd) -> None:
    crowd.end.set()
    for number in range(int(PEER_BURST) + 10):
        await crowd.ask(Lane.WORKER, "10.6.6.6", f"pod-{number}")
    assert crowd.busy == 10
    await crowd.ask(Lane.WORKER, "10.0.0.1", "pod-0", "worker")
    assert crowd.inside[-1] == "worker"
    crowd.now += 1.0
    for number in range(30):
        await crowd.ask(Lane.WORKER, "10.6.6.6", f"pod-{number}")
    assert crowd.busy == 20


async def test_tokens_of_unknown_pods_share_one_bucket_however_many_addresses_send_them(crowd: Crowd) -> None:
    crowd.end.set()
    for number in range(100):
        await crowd.ask(Lane.UNKNOWN, f"10.6.6.{number}")
    assert crowd.busy == 80


async def test_who_waits_too_long_is_told_to_try_again_and_leaves_nothing_behind(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_turns, "WAIT_SECONDS", 0.05)
    async with asyncio.TaskGroup() as group:
        for number in range(SLOTS[Lane.WORKER]):
            group.create_task(crowd.ask(Lane.WORKER, "10.0.0.1", f"pod-{number}"))
        await settle()
        await crowd.ask(Lane.WORKER, "10.0.0.2", "pod-x")
        await crowd.ask(Lane.WORKER, "10.0.0.3", "pod-0")
        assert crowd.busy == 2
        crowd.end.set()
    await crowd.ask(Lane.WORKER, "10.0.0.2", "pod-x", "again")
    assert crowd.inside[-1] == "again"


def test_a_bucket_is_never_fuller_than_its_burst_and_no_clock_that_goes_back_empties_it() -> None:
    bucket = Bucket(rate=1.0, burst=2.0, now=100.0)
    assert [bucket.take(1000.0) for _ in range(3)] == [True, True, False]
    assert not bucket.take(10.0)
    assert bucket.take(11.0)


def test_only_the_addresses_that_asked_last_are_remembered() -> None:
    buckets = PeerBuckets(rate=1.0, burst=1.0, most=3)
    for number in range(100):
        assert buckets.take(str(number), 0.0)
    assert len(buckets) == 3
    assert not buckets.take("99", 0.0)
