"""What a page hears on the stream of changes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest

from support.dashboard.server import AskedClient, World, dashboard
from support.extender.cluster import allocation, job_object, node_object, share
from synergy_dashboard.api import stream as streams
from synergy_dashboard.api.problems import Refusal
from synergy_dashboard.api.stream import MOST_OF_USER, Again, LiveStream
from synergy_dashboard.live.scope import EVERYTHING, Scope
from synergy_kube.resources import NODES, SCHEDULING_POLICIES, TRAINING_JOBS

TEAM = Scope(frozenset({"team"}))
WAITS = {"queue": {"position": 1, "reason": "NoFreeGPU", "message": ""}}
RUNS = {"phase": "Running", "allocation": allocation(share("n1"))}


async def same(scope: Scope) -> Scope | None:
    return scope


async def heard(stream: AsyncIterator[bytes]) -> dict[str, Any]:
    """The next change; comments are passed over."""
    while True:
        text = (await asyncio.wait_for(anext(stream), 10)).decode()
        if not text.startswith(":"):
            name, data, *_ = text.split("\n")
            assert name == "event: change"
            change: dict[str, Any] = json.loads(data.removeprefix("data: "))
            return change


def cluster() -> AskedClient:
    client = AskedClient()
    client.holds(NODES, [node_object("n1")])
    client.holds(SCHEDULING_POLICIES, [{"metadata": {"name": "default"}, "spec": {"policy": "las"}}])
    client.holds(TRAINING_JOBS, [job_object("j", status=WAITS)])
    return client


def answer_to(
    world: World, scope: Scope, again: Again = same, clock: Callable[[], float] = lambda: 0.0, user: str = "ann"
) -> LiveStream:
    return LiveStream(world.live, user, scope, again, clock)


async def opened(
    world: World, scope: Scope, again: Again = same, clock: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[bytes]:
    """The events of an answer."""
    answer = answer_to(world, scope, again, clock)
    async for part in answer.body_iterator:
        assert isinstance(part, bytes)
        yield part


async def follow(world: World, scope: Scope) -> AsyncIterator[bytes]:
    """A stream that has said its first event."""
    stream = opened(world, scope)
    first = await heard(stream)
    assert (first["jobs"], first["queue"], first["types"], first["round_ends_s"]) == ({}, {}, None, 1_000_200.0)
    await settled(world)
    return stream


async def settled(world: World) -> None:
    """All that has changed until now was told."""
    await asyncio.sleep(0.5)
    for one in world.live._subscribers:
        one._pending, _ = type(one._pending)(), one._there.clear()


async def test_a_job_that_starts_is_told_with_all_that_it_changes() -> None:
    async with dashboard(cluster()) as world:
        stream = await follow(world, EVERYTHING)
        await world.client.tell(TRAINING_JOBS, "MODIFIED", job_object("j", status=RUNS))
        change = await heard(stream)
        assert change["queue"] == {"team/j": None}
        assert change["jobs"]["team/j"]["gpus"] == 1
        assert change["nodes"]["n1"]["jobs"] == ["team/j"]
        whole = change if change["types"] is not None else await heard(stream)
        assert (whole["types"][0]["gpus_given"], whole["waiting_by_reason"]) == (1, {})
        assert whole["tenants"][0]["running"] == 1


async def test_hidden_jobs_are_not_told_of() -> None:
    async with dashboard(cluster()) as world:
        stream = await follow(world, TEAM)
        hidden = {"namespace": "other", "uid": "o"}
        await world.client.tell(TRAINING_JOBS, "ADDED", job_object("secret", status=RUNS, **hidden))
        change = await heard(stream)
        assert (change["jobs"], change["queue"], change["nodes"]["n1"]["jobs"]) == ({}, {}, [])
        assert change["nodes"]["n1"]["gpus_given"] == 1
        await asyncio.sleep(0.3)
        await world.client.tell(TRAINING_JOBS, "ADDED", job_object("waits", status=WAITS, **hidden))
        await asyncio.sleep(0.3)
        await world.client.tell(
            TRAINING_JOBS, "MODIFIED", job_object("j", status={"queue": {**WAITS["queue"], "position": 2}})
        )
        rest = [change, await heard(stream)]
        while not rest[-1]["queue"]:
            rest.append(await heard(stream))
        assert "other" not in json.dumps(rest)


async def test_changes_that_come_fast_come_together() -> None:
    async with dashboard(cluster()) as world:
        stream = await follow(world, EVERYTHING)
        for step in range(100):
            progress = {"progress": {"run": 1, "steps": step}}
            await world.client.tell(TRAINING_JOBS, "MODIFIED", job_object("j", status={**RUNS, **progress}))
        told = [await heard(stream)]
        while told[-1]["jobs"].get("team/j", {}).get("steps_done") != 99:
            told.append(await heard(stream))
        assert len(told) < 20


async def test_a_stream_ends_when_the_user_may_see_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_QUIET_SECONDS", 0.01)
    now = 0.0

    async def revoked(scope: Scope) -> Scope | None:
        return None

    async with dashboard(cluster()) as world:
        stream = opened(world, EVERYTHING, revoked, lambda: now)
        await heard(stream)
        await settled(world)
        assert (await anext(stream)).startswith(b": ")
        now = 61.0
        async with asyncio.timeout(10):
            assert [part async for part in stream if not part.startswith(b": ")] == []


async def test_a_user_whose_rights_grow_sees_more_on_the_same_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_QUIET_SECONDS", 0.01)

    async def grown(scope: Scope) -> Scope | None:
        return Scope(frozenset({"team", "other"}))

    clock = iter(range(0, 10**6, 61))
    async with dashboard(cluster()) as world:
        stream = opened(world, TEAM, grown, lambda: float(next(clock)))
        await heard(stream)
        await world.client.tell(TRAINING_JOBS, "ADDED", job_object("new", status=RUNS, namespace="other", uid="o"))
        change = await heard(stream)
        while "other/new" not in change["jobs"]:
            change = await heard(stream)


async def test_too_many_streams_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_STREAMS", 0)
    async with dashboard(cluster()) as world:
        assert "streams are open" in (await world.get("stream", status=503))["error"]


async def test_one_user_does_not_hold_the_streams_of_all() -> None:
    async with dashboard(cluster()) as world:
        kept = [answer_to(world, EVERYTHING) for _ in range(MOST_OF_USER)]
        with pytest.raises(Refusal) as refused:
            answer_to(world, EVERYTHING)
        assert (refused.value.status_code, refused.value.detail.partition(";")[0]) == (429, "ann has 20 streams open")
        kept.append(answer_to(world, EVERYTHING, user="bob"))
        assert world.live.subscribers == MOST_OF_USER + 1


async def test_a_stream_that_ends_makes_room() -> None:
    """Also if it ended before its first event."""
    async with dashboard(cluster()) as world:

        async def away() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def sent(message: Any) -> None:
            raise OSError("the connection is gone")

        answer = answer_to(world, EVERYTHING)
        assert world.live.subscribers_of("ann") == 1
        with suppress(Exception, BaseExceptionGroup):
            await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, away, sent)
        assert world.live.subscribers == 0


async def test_a_change_of_policy_alone_is_told() -> None:
    async with dashboard(cluster()) as world:
        stream = await follow(world, TEAM)
        changed = {"metadata": {"name": "default"}, "spec": {"policy": "srtf", "mechanism": "opt"}}
        await world.client.tell(SCHEDULING_POLICIES, "MODIFIED", changed)
        change = await heard(stream)
        assert (change["policy"]["name"], change["policy"]["mechanism"]) == ("srtf", "opt")
        assert (change["jobs"], change["types"], change["tenants"]) == ({}, None, None)
        same_but_for_its_history = {**changed, "status": {"history": {"jobs": 3}}}
        await world.client.tell(SCHEDULING_POLICIES, "MODIFIED", same_but_for_its_history)
        in_force = {"inForce": {"policy": "las", "mechanism": "tune", "roundSeconds": 60}}
        await world.client.tell(SCHEDULING_POLICIES, "MODIFIED", {**changed, "status": in_force})
        change = await heard(stream)
        assert (change["policy"]["name"], change["policy"]["round_s"]) == ("las", 60.0)
