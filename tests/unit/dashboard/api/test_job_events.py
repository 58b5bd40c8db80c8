"""Events of jobs: one read answers for all jobs of a namespace until it is old."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from synergy_dashboard.api.job import events as job_events
from synergy_dashboard.api.job.events import JobEvents
from synergy_kube import ApiError
from synergy_kube.resources import EVENTS


class Server:
    """Has events by namespace, in pages of one. A read takes `seconds` of the test's clock, waits for the gate, and is
    refused after `fails_after` pages."""

    def __init__(self) -> None:
        self.now = 100.0
        self.seconds = 0.0
        self.fails_after: int | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.reads: list[str] = []
        self.events: dict[str, list[dict[str, Any]]] = {}

    async def pages(self, resource: Any, namespace: str, *, field_selector: str) -> AsyncIterator[list[dict[str, Any]]]:
        assert (resource, field_selector) == (EVENTS, "involvedObject.kind=TrainingJob")
        self.reads.append(namespace)
        await self.gate.wait()
        self.now += self.seconds
        for at, one in enumerate(self.events.get(namespace, [])):
            if at == self.fails_after:
                raise ApiError(410, "Expired", "too old")
            yield [one]


@pytest.fixture
def server() -> Server:
    server = Server()
    server.events["team"] = [event("a", "First"), event("b", "Other"), event("a", "Second")]
    return server


@pytest.fixture
def events(server: Server) -> JobEvents:
    return JobEvents(server, lambda: server.now)  # type: ignore[arg-type]


def event(uid: str, reason: str) -> dict[str, Any]:
    return {"involvedObject": {"uid": uid}, "reason": reason, "lastTimestamp": "2026-01-01T00:00:00Z", "metadata": {}}


async def said(events: JobEvents, uid: str, namespace: str = "team") -> list[str]:
    return [one.what for one in await events.of(namespace, uid)]


async def test_one_read_answers_all_who_ask_at_once(server: Server, events: JobEvents) -> None:
    asked = [said(events, uid) for uid in ("a", "b", "c", "a")]
    assert await asyncio.gather(*asked) == [["First", "Second"], ["Other"], [], ["First", "Second"]]
    assert server.reads == ["team"]


@pytest.mark.parametrize(("seconds", "serves"), [(0.0, 2.0), (1.0, 20.0), (60.0, 300.0)])
async def test_the_slower_the_read_the_longer_it_serves(
    server: Server, events: JobEvents, seconds: float, serves: float
) -> None:
    server.seconds = seconds
    await said(events, "a")
    server.events["team"].append(event("a", "Third"))
    server.now += serves - 0.1
    assert await said(events, "a") == ["First", "Second"]
    server.now += 0.2
    assert await said(events, "a") == ["First", "Second", "Third"]


async def test_namespaces_have_their_own(server: Server, events: JobEvents) -> None:
    server.seconds = 60.0
    server.events["other"] = [event("z", "Far")]
    await said(events, "a")
    assert await said(events, "z", "other") == ["Far"]
    assert await said(events, "z") == []


@pytest.mark.parametrize("pages", [0, 1])
async def test_what_cannot_be_read_stays_as_it_was_and_is_read_again_soon(
    server: Server, events: JobEvents, pages: int
) -> None:
    await said(events, "a")
    server.fails_after, server.seconds = pages, 60.0
    server.now += 10.0
    assert await said(events, "a") == ["First", "Second"]
    await said(events, "a")
    assert server.reads == ["team", "team"], "not at once"
    server.fails_after = None
    server.events["team"] = [event("a", "Third")]
    server.now += 31.0
    assert await said(events, "a") == ["Third"]


async def test_a_page_does_not_wait_for_a_slow_read(
    server: Server, events: JobEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_events, "_PATIENCE_S", 0.05)
    await said(events, "a")
    server.now += 10.0
    server.gate.clear()
    server.events["team"].append(event("a", "Third"))
    assert await said(events, "a") == ["First", "Second"]
    assert await said(events, "z", "other") == []
    server.gate.set()
    assert await said(events, "a") == ["First", "Second", "Third"]
    assert server.reads == ["team", "team", "other"]


async def test_few_namespaces_are_read_at_a_time(
    server: Server, events: JobEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_events, "_PATIENCE_S", 0.05)
    server.gate.clear()
    await asyncio.gather(*(said(events, "a", name) for name in "wxyz"))
    assert len(server.reads) == 2
    server.gate.set()
    await asyncio.gather(*(said(events, "a", name) for name in "wxyz"))
    assert sorted(server.reads) == list("wxyz")


async def test_a_read_goes_on_when_the_first_who_asked_leaves(server: Server, events: JobEvents) -> None:
    leaving = asyncio.create_task(said(events, "a"))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert await said(events, "a") == ["First", "Second"]
    assert server.reads == ["team"]


async def test_what_nobody_asks_for_is_forgotten(server: Server, events: JobEvents) -> None:
    await said(events, "a")
    server.now += job_events._KEPT_S + 1
    await said(events, "z", "other")
    assert list(events._namespaces) == ["other"]
