"""The recorder against an API server of our own that forgets, and a database that goes away."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, connected
from support.extender.cluster import allocation, job_object, share
from support.waiting import eventually
from synergy_dashboard.recorder.follow import Recorder
from synergy_dashboard.store.store import Store
from synergy_kube import KubeClient

Json = dict[str, Any]
EXPIRED = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}


@asynccontextmanager
async def recording(client: KubeClient, url: str) -> AsyncIterator[Store]:
    """A recorder that runs meanwhile; its store."""
    async with measured(client, url) as (_, store):
        yield store


@asynccontextmanager
async def measured(client: KubeClient, url: str) -> AsyncIterator[tuple[Recorder, Store]]:
    """A recorder that runs meanwhile, and its store."""
    store = Store(url)
    store.migrate()
    recorder = Recorder(client, store)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder, store
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        store.close()


async def until(what: str, done: Callable[[], bool]) -> None:
    async def so() -> bool:
        return await asyncio.to_thread(done)

    await eventually(so, seconds=30, what=what, every=0.05)


def job(number: int, version: int, name: str = "j", **service: Any) -> Json:
    status = {"allocation": allocation(share("n1"), run=number), "service": service} if number else {}
    return job_object(name, status=status, resourceVersion=str(version))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'history.db'}"


async def test_runs_in_a_gap_are_found_by_comparing(url: str) -> None:
    server = WatchServer(job(1, 5))
    async with connected(server) as client, recording(client, url) as store:
        await until("the first run", lambda: [one.run for one in store.runs_of("uid-j")] == [1])
        server.jobs = [job(3, 12, endedRun=2, run=2, last={"run": 2, "outcome": "Evicted"})]
        await server.events.put(EXPIRED)
        await until("the others", lambda: [one.run for one in store.runs_of("uid-j")] == [1, 2, 3])
        assert [(one.seen, one.outcome) for one in store.runs_of("uid-j")] == [
            (True, "Unknown"), (False, "Evicted"), (True, ""),
        ]  # fmt: skip


async def test_a_restarted_recorder_goes_on_where_it_was(url: str) -> None:
    server = WatchServer(job(1, 5), job(0, 6, "other"))
    async with connected(server) as client:
        async with recording(client, url) as store:
            await until("the first run", lambda: store.remembered().version == "10")
        server.failing = True  # it needs no list: the collection's version is in the store
        await server.events.put({"type": "DELETED", "object": job(1, 11)})
        async with recording(client, url) as store:
            await until("the end", lambda: store.remembered().version == "11")
            (run,) = store.runs_of("uid-j")
            assert (run.outcome, run.reason) == ("Unknown", "the job was deleted")
            found = store.job("team", "j")
            assert found is not None
            assert found.deleted_s is not None
            assert store.remembered().objects.keys() == {("team", "other")}


async def test_a_job_that_cannot_be_read_stops_no_other(url: str) -> None:
    odd = job_object("odd", status={"allocation": {"state": "Lent"}}, resourceVersion="4")
    server = WatchServer(odd, job(1, 5))
    async with connected(server) as client, recording(client, url) as store:
        await until("the run", lambda: len(store.runs_of("uid-j")) == 1)
        await server.events.put({"type": "MODIFIED", "object": job(1, 11, "odd")})
        await until("the other, once it can be read", lambda: len(store.runs_of("uid-odd")) == 1)


async def test_a_recorder_waits_for_the_one_that_writes(url: str) -> None:
    server = WatchServer(job(1, 5))
    first = Store(url)
    first.migrate()
    assert first.lead()
    async with connected(server) as client, recording(client, url) as store:
        await asyncio.sleep(1.0)
        assert store.runs_of("uid-j") == []
        first.close()
        await until("the run", lambda: len(store.runs_of("uid-j")) == 1)


async def test_after_an_error_of_the_database_it_begins_anew(url: str) -> None:
    server = WatchServer(job(1, 5))
    async with connected(server) as client, recording(client, url) as store:
        await until("the first run", lambda: len(store.runs_of("uid-j")) == 1)
        store.resign()  # as when its connection breaks: the next write fails
        change = {"type": "MODIFIED", "object": job(2, 11)}
        await server.events.put(change)
        await until("its failure", lambda: store.remembered().version == "10" and server.events.empty())
        await asyncio.sleep(1.0)
        await server.events.put(change)  # as an API server does again for a watch from version 10
        await until("the second run", lambda: len(store.runs_of("uid-j")) == 2)


async def test_what_cannot_be_read_is_counted_and_the_size_known(url: str, tmp_path: Path) -> None:
    odd = job_object("odd", status={"allocation": {"state": "Lent"}}, resourceVersion="4")
    server = WatchServer(odd, job(1, 5))
    async with connected(server) as client, measured(client, url) as (recorder, store):
        assert (recorder.skipped, recorder.size_bytes, recorder.waiting) == (0, None, 0)
        await until("the run", lambda: len(store.runs_of("uid-j")) == 1)
        assert recorder.skipped == 1
        assert recorder.size_bytes is not None
        assert 0 < recorder.size_bytes <= 2 * (tmp_path / "history.db").stat().st_size + (1 << 20)


async def test_a_number_that_no_database_takes_stops_no_other_job(url: str) -> None:
    """It would fail in the transaction of all changes, at each try anew."""
    huge = job_object("huge", spec={"steps": 10**30}, resourceVersion="4")
    server = WatchServer(huge, job(1, 5))
    async with connected(server) as client, measured(client, url) as (recorder, store):
        await until("the run", lambda: len(store.runs_of("uid-j")) == 1)
        assert (recorder.skipped, recorder.failures) == (1, 0)
        assert store.job("team", "huge") is None
        await server.events.put({"type": "MODIFIED", "object": job(1, 11, "huge")})
        await until("the other, once it can be recorded", lambda: len(store.runs_of("uid-huge")) == 1)


async def test_what_the_database_does_not_take_is_a_backlog(url: str) -> None:
    server = WatchServer(job(1, 5))
    async with connected(server) as client, measured(client, url) as (recorder, store):
        await until("the first run", lambda: len(store.runs_of("uid-j")) == 1 and not recorder.waiting)
        blocked = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        blocked.execute("BEGIN IMMEDIATE")  # no other can write now
        for version in (11, 12, 13):
            await server.events.put({"type": "MODIFIED", "object": job(version - 9, version)})
        await until("the backlog", lambda: recorder.waiting == 3)
        await asyncio.sleep(1.0)
        assert recorder.waiting == 3
        blocked.execute("ROLLBACK")
        blocked.close()
        await until("the runs", lambda: len(store.runs_of("uid-j")) == 4)
        await until("an empty backlog", lambda: recorder.waiting == 0)
