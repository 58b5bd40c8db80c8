"""Namespaces for which rights are asked: those of the history and of present jobs, and no others."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from support.dashboard.server import AskedClient, World, dashboard
from support.extender.cluster import NOW, job_object
from support.waiting import eventually
from synergy_dashboard.facts import JobFact
from synergy_dashboard.live.past_namespaces import PastNamespaces
from synergy_dashboard.store.bundle import Facts
from synergy_dashboard.store.store import Store
from synergy_kube.resources import TRAINING_JOBS


def job(namespace: str, created_s: float = NOW, **more: float) -> JobFact:
    uid = f"{namespace}-{created_s:g}"
    known = {"tenant": "", "gpus": 1, "gpu_types": (), "steps": 1, "weight": 1.0}
    return JobFact(uid=uid, namespace=namespace, name="j", created_s=created_s, **known, **more)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/history.db")
    store.migrate()
    assert store.lead()
    yield store
    store.close()


def test_of_more_namespaces_the_history_tells_those_of_the_newest_jobs(store: Store) -> None:
    times = [("a", 1), ("b", 2), ("c", 3), ("a", 4)]
    store.apply([Facts(jobs=tuple(job(name, NOW + at) for name, at in times))])
    assert store.namespaces(2) == {"a", "c"}
    assert store.namespaces(10) == {"a", "b", "c"}


async def test_a_namespace_is_forgotten_with_its_last_job_of_the_history(store: Store) -> None:
    client = AskedClient()
    client.holds(TRAINING_JOBS, [job_object("now")])
    store.apply([Facts(jobs=(job("old", deleted_s=NOW), job("older", deleted_s=NOW)))])
    async with dashboard(client) as world:
        past = PastNamespaces(world.live, store.namespaces)
        await past.read()
        assert world.live.past_namespaces == {"old", "older", "team"}
        store.prune(NOW + 100 * 86400, 90)
        await past.read()
        assert world.live.past_namespaces == {"team"}


async def test_the_namespace_of_a_job_that_has_gone_is_kept_until_the_history_must_have_it() -> None:
    client = AskedClient()
    client.holds(TRAINING_JOBS, [])
    async with dashboard(client) as world:
        past = PastNamespaces(world.live, lambda most: set())
        await client.tell(TRAINING_JOBS, "ADDED", job_object("short"))
        await client.tell(TRAINING_JOBS, "DELETED", job_object("short"))
        await past.read()
        assert world.live.past_namespaces == {"team"}, "it may be recorded in a moment"
        await past.read()
        assert world.live.past_namespaces == set()


async def test_while_the_database_is_away_no_namespace_is_forgotten() -> None:
    answers: list[set[str] | Exception] = [{"old"}, OperationalError("select", {}, Exception("away")), set()]
    seen: list[set[str]] = []

    async with dashboard() as world:

        def recorded(_: int) -> set[str]:
            seen.append(set(world.live.past_namespaces))
            answer = answers[min(len(seen), len(answers)) - 1]
            if isinstance(answer, Exception):
                raise answer
            return answer

        async with following(PastNamespaces(world.live, recorded)):
            await eventually(lambda: _forgotten(world, seen), seconds=10, what="the last answer", every=0.01)
    assert seen[:3] == [set(), {"old"}, {"old"}]


async def _forgotten(world: World, seen: list[set[str]]) -> bool:
    return len(seen) >= 3 and world.live.past_namespaces == set()


@asynccontextmanager
async def following(past: PastNamespaces) -> AsyncIterator[None]:
    task = asyncio.create_task(past.run(every_s=0.01))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
