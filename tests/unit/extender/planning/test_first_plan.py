"""The first plan of a lead: made while the API server is asked what the old leader wrote last."""

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import allocation, job_object, share
from support.extender.leads import Leads
from support.waiting import eventually
from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.metrics import Metrics
from synergy_extender.planner.question import Planned
from synergy_extender.planner.worker import NO_CLOCKS, PlanWorker
from synergy_extender.planning import loop as planning
from synergy_extender.planning.first_plan import Refresh
from synergy_extender.planning.loop import PlanningLoop
from synergy_extender.snapshot.times import Clocks
from synergy_extender.writing.job_statuses import JobStatuses
from synergy_kube.errors import ApiError

JOBS = "/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs"
HELD = {"phase": "Running", "allocation": allocation(share("n1"))}


class SlowServer(WatchServer):
    """Says which versions its jobs have once `told` is set."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        super().__init__(*jobs)
        self.told = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "PartialObjectMetadata" in request.headers.get("Accept", ""):
            await self.told.wait()
        return await super().answer(request)

    def change(self, *jobs: dict[str, Any]) -> None:
        """What the API server has by now, and the watch has not told."""
        self.jobs = list(jobs)
        self.now = {f"{JOBS}/{job['metadata']['name']}": job for job in jobs}


class Planner(PlanWorker):
    """Plans at once, and keeps which jobs ran when it was asked."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.running: list[list[str]] = []

    async def start(self) -> None:
        pass

    async def plan(
        self, snapshot: core.Snapshot, config: PlanConfig, solve_s: float = 60.0, clocks: Clocks = NO_CLOCKS
    ) -> Planned:
        self.running.append([job.name for job in snapshot.jobs if job.running is not None])
        return Planned(plan(snapshot, config), 0.01)


@pytest.mark.parametrize(
    ("now", "other"),
    [
        ([job_object("a", resourceVersion="12", status=HELD)], True),
        ([job_object("a", resourceVersion="12", status={"phase": "Pending"})], False),
        ([job_object("a"), job_object("b", resourceVersion="12")], False),
        ([job_object("a"), job_object("b", resourceVersion="12", status=HELD)], True),
        ([job_object("a")], False),
    ],
    ids=["a place", "another phase", "a new job", "a new job with a place", "nothing"],
)
async def test_only_another_place_makes_a_plan_one_of_another_cluster(now: list[dict[str, Any]], other: bool) -> None:
    server = SlowServer(job_object("a"))
    server.told.set()
    async with following(server) as (_, cache):
        server.change(*now)
        refresh = Refresh(cache)
        async with refresh.asking():
            assert await refresh.finds_other_places() is other
        assert {job.name for job in cache.jobs} == {job["metadata"]["name"] for job in now}


def asking() -> int:
    return sum("refresh_jobs" in repr(task.get_coro()) for task in asyncio.all_tasks())


async def test_what_asking_raises_is_raised_and_who_stops_to_wait_asks_no_longer() -> None:
    server = SlowServer(job_object("a"))
    async with following(server) as (_, cache):
        async with Refresh(cache).asking():
            await asyncio.sleep(0.05)
            assert asking() == 1
        assert asking() == 0
        server.failing = True
        server.told.set()
        refresh = Refresh(cache)
        async with refresh.asking():
            with pytest.raises(ApiError, match="down"):
                await refresh.finds_other_places()
        with pytest.raises(ApiError, match="down"):
            async with refresh.asking():
                pytest.fail("a pass was begun")
        assert not refresh.answered


@pytest.mark.parametrize(("status", "asked"), [({}, [[]]), (HELD, [[], ["team/a"]])], ids=["the same", "a place"])
async def test_nothing_is_written_before_the_answer_nor_of_a_plan_that_it_makes_untrue(
    status: dict[str, Any], asked: list[list[str]]
) -> None:
    server, planner = SlowServer(job_object("a"), job_object("b")), Planner()

    async def planned() -> bool:
        return bool(planner.running)

    async def wrote() -> bool:
        return bool(server.patches)

    async with following(server) as (client, cache):
        loop = PlanningLoop(client, cache, planner, Metrics(), lead=Leads(), clock=time.time)
        task = asyncio.create_task(loop.run())
        await eventually(planned, seconds=10, what="a plan", every=0.02)
        await asyncio.sleep(0.2)
        assert (planner.running, server.patches) == ([[]], [])
        server.change(job_object("a", resourceVersion="12", status=status), job_object("b"))
        server.told.set()
        await eventually(wrote, seconds=10, what="a write", every=0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert planner.running[: len(asked)] == asked


async def test_a_pass_that_fails_after_the_answer_does_not_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server, planner = SlowServer(job_object("a")), Planner()
    server.told.set()
    asked = 0
    real = ClusterCache.refresh_jobs

    async def counted(cache: ClusterCache) -> None:
        nonlocal asked
        asked += 1
        await real(cache)

    async def fails(*_: Any, **__: Any) -> None:
        raise TimeoutError

    async def twice() -> bool:
        return len(planner.running) >= 2

    monkeypatch.setattr(ClusterCache, "refresh_jobs", counted)
    monkeypatch.setattr(JobStatuses, "write", fails)
    async with following(server) as (client, cache):
        loop = PlanningLoop(client, cache, planner, Metrics(), lead=Leads(), clock=time.time)
        task = asyncio.create_task(loop.run())
        await eventually(twice, seconds=20, what="another pass", every=0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert asked == 1


async def test_while_asking_fails_one_plan_is_made_and_after_it_one_with_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, planner = SlowServer(job_object("a"), job_object("b")), Planner()
    server.told.set()
    plans_before: list[int] = []
    real = ClusterCache.refresh_jobs

    async def fails_at_first(cache: ClusterCache) -> None:
        await asyncio.sleep(0.1)
        plans_before.append(len(planner.running))
        if len(plans_before) < 4:
            raise TimeoutError
        server.change(job_object("a", resourceVersion="12", status=HELD), job_object("b"))
        await real(cache)

    async def wrote() -> bool:
        return bool(server.patches)

    monkeypatch.setattr(ClusterCache, "refresh_jobs", fails_at_first)
    monkeypatch.setattr(planning, "_AFTER_FAILURE_S", 0.01)
    async with following(server) as (client, cache):
        loop = PlanningLoop(client, cache, planner, Metrics(), lead=Leads(), clock=time.time)
        task = asyncio.create_task(loop.run())
        await eventually(wrote, seconds=10, what="a write", every=0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert plans_before[1:] == [1, 1, 1]
    assert planner.running[:2] == [[], ["team/a"]]


async def test_a_plan_of_a_round_that_is_over_when_the_answer_comes_is_made_again() -> None:
    server, planner = SlowServer(job_object("a")), Planner()
    clock = [time.time()]

    async def planned() -> bool:
        return bool(planner.running)

    async def again() -> bool:
        return len(planner.running) == 2

    async with following(server) as (client, cache):
        loop = PlanningLoop(client, cache, planner, Metrics(), lead=Leads(), clock=lambda: clock[0])
        task = asyncio.create_task(loop.run())
        await eventually(planned, seconds=10, what="a plan", every=0.02)
        clock[0] += 2 * loop.rounds.seconds
        server.told.set()
        await eventually(again, seconds=10, what="another plan", every=0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
