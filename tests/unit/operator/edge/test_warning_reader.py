"""Warnings of pods that make no progress: one read answers all questions of a namespace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.waiting import eventually
from synergy_kube import ApiError
from synergy_operator.edge.caches.pod_events import PodEventCache
from synergy_operator.edge.warning_reader import WarningReader

JOB, OTHER = ("team", "job"), ("team", "other")


def event(uid: str, message: str, at: str) -> dict[str, Any]:
    return {"involvedObject": {"uid": uid}, "reason": "FailedMount", "message": message, "lastTimestamp": at}


class Server:
    """Has warnings by namespace, in pages of one. `fails` reads are refused; a read takes `seconds`."""

    def __init__(self) -> None:
        self.warnings: dict[str, list[dict[str, Any]]] = {}
        self.reads: list[str] = []
        self.fails = 0
        self.seconds = 0.0

    async def pages(self, _: Any, namespace: str, *, field_selector: str) -> AsyncIterator[list[dict[str, Any]]]:
        assert field_selector == "type=Warning"
        self.reads.append(namespace)
        await asyncio.sleep(self.seconds)
        if self.fails:
            self.fails -= 1
            raise ApiError(500, "InternalError", "down")
        for one in self.warnings.get(namespace, []):
            yield [one]


class Stage:
    """A reader at work."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cache = PodEventCache()
        self.woken: list[tuple[str, str]] = []
        self.now = 100.0
        self.reader = WarningReader(server, self.cache, clock=lambda: self.now, wake=self.woken.append)  # type: ignore[arg-type]

    def told(self, job: tuple[str, str], uid: str) -> str | None:
        warning = self.cache.of(job).warnings.get(uid)
        return None if warning is None else warning.message


@pytest.fixture
def server() -> Server:
    return Server()


@asynccontextmanager
async def at_work(server: Server) -> AsyncIterator[Stage]:
    stage = Stage(server)
    task = asyncio.create_task(stage.reader.run())
    try:
        yield stage
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def read(server: Server, times: int) -> None:
    async def enough() -> bool:
        return len(server.reads) >= times

    await eventually(enough, seconds=20, what=f"{times} reads", every=0.01)
    await asyncio.sleep(0.05)


async def test_one_read_answers_all_questions_of_a_namespace_with_the_newest_of_each(server: Server) -> None:
    server.warnings["team"] = [
        event("pod-1", "new", "2026-01-01T00:00:09Z"),
        event("pod-1", "old", "2026-01-01T00:00:01Z"),
        event("pod-2", "of another job", "2026-01-01T00:00:02Z"),
        event("nobody", "asks for it", "2026-01-01T00:00:03Z"),
    ]
    async with at_work(server) as stage:
        for job, uid in ((JOB, "pod-1"), (OTHER, "pod-2"), (OTHER, "pod-3")):
            stage.reader.ask(job, uid)
        await read(server, 1)
        assert server.reads == ["team"]
        assert (stage.told(JOB, "pod-1"), stage.told(OTHER, "pod-2")) == ("new", "of another job")
        assert stage.told(OTHER, "pod-3") == "", "asked for, and nothing found"
        assert stage.woken == [JOB, OTHER]


async def test_who_is_told_the_same_again_is_not_woken(server: Server) -> None:
    server.warnings["team"] = [event("pod-1", "stuck", "2026-01-01T00:00:09Z")]
    async with at_work(server) as stage:
        stage.reader.ask(JOB, "pod-1")
        await read(server, 1)
        stage.now = 120.0
        stage.reader.ask(JOB, "pod-1")
        assert stage.told(JOB, "pod-1") == "stuck", "until the answer, the one before counts"
        assert stage.cache.of(JOB).warnings["pod-1"].read_at == 120.0
        await read(server, 2)
        assert stage.woken == [JOB]


async def test_reads_of_a_namespace_follow_one_another_slowly_and_others_wait_less(server: Server) -> None:
    server.seconds = 0.1
    async with at_work(server) as stage:
        stage.reader.ask(JOB, "pod-1")
        await read(server, 1)
        stage.reader.ask(JOB, "pod-1")
        await asyncio.sleep(0.25)
        stage.reader.ask(("elsewhere", "job"), "pod-9")
        assert server.reads == ["team"]
        await read(server, 2)
        assert server.reads == ["team", "elsewhere"], "after 0.4 s"
        await asyncio.sleep(0.7)
        assert server.reads == ["team", "elsewhere"], "a read of 0.1 s is followed by a pause of 2 s"
        await read(server, 3)
        assert server.reads == ["team", "elsewhere", "team"]


async def test_who_asked_first_is_answered_first_and_who_asks_again_is_last(server: Server) -> None:
    async with at_work(server) as stage:
        for name in ("b", "a", "c"):
            stage.reader.ask((name, "job"), "pod-1")
        await read(server, 1)
        for name in ("b", "a"):
            stage.reader.ask((name, "job"), "pod-2")
        await read(server, 4)
        assert server.reads == ["b", "a", "c", "b"]


async def test_a_read_that_fails_stops_nothing(server: Server) -> None:
    server.fails = 1
    server.warnings["elsewhere"] = [event("pod-9", "told", "2026-01-01T00:00:09Z")]
    async with at_work(server) as stage:
        stage.reader.ask(JOB, "pod-1")
        stage.reader.ask(("elsewhere", "job"), "pod-9")
        await read(server, 2)
        assert stage.told(("elsewhere", "job"), "pod-9") == "told"
        assert stage.told(JOB, "pod-1") == "", "it asks again by itself"


async def test_an_answer_for_a_job_that_is_gone_is_not_kept(server: Server) -> None:
    server.seconds = 0.05
    server.warnings["team"] = [event("pod-1", "late", "2026-01-01T00:00:09Z")]
    async with at_work(server) as stage:
        stage.reader.ask(JOB, "pod-1")
        await asyncio.sleep(0.01)
        stage.cache.forget(JOB)
        await read(server, 1)
        await asyncio.sleep(0.1)
        assert stage.told(JOB, "pod-1") is None
        assert stage.woken == []
