"""The leader's loop when something fails: it goes on at a measured pace, and running training with it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import allocation, job_object, key, share
from support.extender.leads import Leads
from support.waiting import eventually
from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.decisions.estimates import Estimate
from synergy_extender.metrics import Metrics
from synergy_extender.planner.question import Planned
from synergy_extender.planner.worker import NO_CLOCKS, PlanFailed, PlanWorker
from synergy_extender.planning import loop as loop_module
from synergy_extender.planning import questions
from synergy_extender.planning.forecasting import Forecasts
from synergy_extender.planning.loop import PlanningLoop
from synergy_extender.snapshot.times import Clocks
from synergy_extender.writing.job_statuses import ESTIMATES_PER_SECOND


class FailingWorker(PlanWorker):
    """A planner that never has an answer."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.asked = 0

    async def start(self) -> None:
        pass

    async def plan(
        self, snapshot: core.Snapshot, config: PlanConfig, solve_s: float = 60.0, clocks: Clocks = NO_CLOCKS
    ) -> Planned:
        self.asked += 1
        raise PlanFailed("no answer")


@asynccontextmanager
async def leading(
    server: WatchServer, worker: PlanWorker, forecasts: Forecasts | None = None, lead: Leads | None = None
) -> AsyncIterator[PlanningLoop]:
    async with following(server) as (client, cache):
        lead = lead or Leads()
        loop = PlanningLoop(client, cache, worker, Metrics(), lead=lead, clock=time.time, forecasts=forecasts)
        task = asyncio.create_task(loop.run())
        try:
            yield loop
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_replica_in_reserve_has_a_planner_that_only_waits_for_its_first_question() -> None:
    worker = PlanWorker(timeout_s=60)

    async def started() -> bool:
        return worker.pid is not None

    async with leading(WatchServer(), worker, lead=Leads(leading=False)):
        await eventually(started, seconds=20, what="the planner's process")
    assert worker.pid is None, "it ends with the replica"


class CountingWorker(FailingWorker):
    """Plans at once, and counts how many jobs it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[int] = []
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1

    async def plan(
        self, snapshot: core.Snapshot, config: PlanConfig, solve_s: float = 60.0, clocks: Clocks = NO_CLOCKS
    ) -> Planned:
        self.jobs.append(len(snapshot.jobs))
        return Planned(plan(snapshot, config), 0.01)


async def test_a_replica_whose_leader_is_silent_reads_and_plans_and_writes_nothing() -> None:
    server, worker = WatchServer(job_object("a"), job_object("b")), CountingWorker()
    lead = Leads(leading=False, near=True)

    async def planned() -> bool:
        return bool(worker.jobs)

    async def wrote() -> bool:
        return bool(server.patches)

    async with leading(server, worker, lead=lead) as loop:
        await eventually(planned, seconds=10, what="a plan", every=0.02)
        await asyncio.sleep(0.3)
        assert worker.jobs == [2]
        assert server.patches == []
        lead.leading, lead.near = True, False
        loop.notify()
        await eventually(wrote, seconds=10, what="a write by the new leader", every=0.02)


async def test_a_leader_that_is_heard_again_leaves_nothing_that_was_made_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, worker = WatchServer(job_object("a")), CountingWorker()
    lead = Leads(leading=False, near=True)
    dropped: list[object] = []

    def drop(asked: questions.PlanQuestions) -> None:
        dropped.append(asked)

    monkeypatch.setattr(questions.PlanQuestions, "forget", drop)

    async def planned() -> bool:
        return bool(worker.jobs)

    async def closed() -> bool:
        return worker.closed == 1

    async with leading(server, worker, lead=lead) as loop:
        await eventually(planned, seconds=10, what="a plan", every=0.02)
        await asyncio.sleep(0.1)
        assert dropped == []
        lead.near = False
        loop.notify()
        await eventually(closed, seconds=10, what="the planner's process to end", every=0.02)
        assert len(dropped) >= 1
        assert worker.jobs == [1]


async def test_a_planner_that_fails_while_a_replica_gets_ready_keeps_it_from_nothing() -> None:
    server, worker = WatchServer(job_object("a")), FailingWorker()
    lead = Leads(leading=False, near=True)

    async def asked_once() -> bool:
        return worker.asked == 1

    async def asked_again() -> bool:
        return worker.asked > 1

    async with leading(server, worker, lead=lead) as loop:
        await eventually(asked_once, seconds=10, what="a question", every=0.02)
        lead.leading, lead.near = True, False
        loop.notify()
        await eventually(asked_again, seconds=10, what="the leader's question", every=0.02)


async def test_a_replica_that_could_not_get_ready_leads_all_the_same() -> None:
    server, worker = WatchServer(job_object("a")), CountingWorker()
    lead = Leads(leading=False)

    async def refused() -> bool:
        return server.refused >= 1

    async def planned() -> bool:
        return bool(worker.jobs)

    async with leading(server, worker, lead=lead) as loop:
        server.failing, lead.near = True, True
        loop.notify()
        await eventually(refused, seconds=10, what="a read that is refused", every=0.02)
        assert worker.jobs == []
        server.failing = False
        lead.leading, lead.near = True, False
        loop.notify()
        await eventually(planned, seconds=10, what="a plan", every=0.02)


@pytest.mark.parametrize(("kept_s", "kept"), [(60.0, True), (0.0, False)])
async def test_a_lead_that_comes_back_soon_still_has_what_makes_passes_short(
    kept_s: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = questions.build_snapshot
    known: list[Any] = []

    def noted(*args: Any, **more: Any) -> Any:
        known.append(more["known"])
        return real(*args, **more)

    async def passed_before() -> bool:
        return bool(known)

    async def passed_again() -> bool:
        return len(known) > before

    monkeypatch.setattr(questions, "build_snapshot", noted)
    monkeypatch.setattr(loop_module, "_SHORTCUTS_S", kept_s)
    lead = Leads()
    async with leading(WatchServer(job_object("a")), CountingWorker(), lead=lead) as loop:
        await eventually(passed_before, seconds=10, what="a pass", every=0.02)
        lead.leading = False
        loop.notify()
        await asyncio.sleep(0.5)
        loop.notify()
        await asyncio.sleep(0.1)
        before = len(known)
        lead.leading = True
        loop.notify()
        await eventually(passed_again, seconds=10, what="another pass", every=0.02)
    assert (known[-1] is known[0]) == kept


async def test_estimates_are_written_without_a_plan_and_only_so_many() -> None:
    queue = {"position": 1, "reason": "NoFreeGPU", "message": "waits"}
    jobs = [job_object(f"j{number}", status={"queue": queue}) for number in range(40)]
    server, forecasts = WatchServer(*jobs), Forecasts(Metrics(), enabled=True)
    forecasts.estimates = {key(f"j{number}"): Estimate(time.time() + 600, None) for number in range(40)}

    async def written() -> bool:
        return bool(server.patches)

    begun = time.monotonic()
    async with leading(server, FailingWorker(), forecasts):
        await eventually(written, seconds=10, what="a write", every=0.02)
        await asyncio.sleep(1)
    told = [patch["status"]["queue"] for patch in server.patches]
    assert len(told) <= ESTIMATES_PER_SECOND * (2 + time.monotonic() - begun)
    assert {tuple(sorted(one)) for one in told} == {("estimatedStart", "message", "position", "reason")}


async def test_without_a_planner_ended_runs_are_released_all_the_same() -> None:
    held = allocation(share("n1"), until=time.time() - 40)
    ended = job_object(status={"allocation": held, "service": {"run": 1, "endedRun": 1}})
    server, worker = WatchServer(ended), FailingWorker()

    async def released() -> bool:
        return bool(server.patches)

    async with leading(server, worker):
        await eventually(released, seconds=10, what="a write", every=0.02)
    written = server.patches[0]["status"]["allocation"]
    assert (written["run"], written["state"]) == (1, "Released")
    assert 1 <= worker.asked <= 2


@pytest.mark.parametrize(("module", "step"), [(questions, "build_snapshot"), (loop_module, "decide")])
async def test_while_it_computes_the_event_loop_is_free_for_others(
    module: ModuleType, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(module, step)
    ticks: list[int] = []
    now = 0

    def slow(*args: Any, **more: Any) -> Any:
        before = now
        time.sleep(0.5)
        ticks.append(now - before)
        return real(*args, **more)

    monkeypatch.setattr(module, step, slow)
    async with leading(WatchServer(), FailingWorker()):
        deadline = time.monotonic() + 20
        while not ticks and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
            now += 1
    assert ticks[0] >= 3


async def test_after_a_long_plan_the_next_one_waits_as_long_again() -> None:
    class SlowWorker(FailingWorker):
        async def plan(
            self, snapshot: core.Snapshot, config: PlanConfig, solve_s: float = 60.0, clocks: Clocks = NO_CLOCKS
        ) -> Planned:
            asked_at.append(time.monotonic())
            await asyncio.sleep(0.7)
            return Planned(plan(snapshot, config), 0.7)

    asked_at: list[float] = []
    server = WatchServer(job_object("a"))

    async def asked() -> bool:
        return len(asked_at) > before

    async with leading(server, SlowWorker()):
        for name in ("b", "c"):
            before = len(asked_at)
            await server.events.put({"type": "ADDED", "object": job_object(name)})
            await eventually(asked, seconds=10, what="a plan", every=0.02)
    assert asked_at[-1] - asked_at[-2] >= 2 * 0.69


async def test_while_the_api_server_refuses_it_is_asked_again_once_a_second() -> None:
    server = WatchServer()
    async with following(server) as (client, cache):
        server.failing = True
        loop = PlanningLoop(client, cache, FailingWorker(), Metrics(), lead=Leads(), clock=time.time)
        begun = time.monotonic()
        task = asyncio.create_task(loop.run())

        async def refused_twice() -> bool:
            return server.refused >= 2

        await eventually(refused_twice, seconds=10, what="a second try", every=0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert server.refused == 2
        assert time.monotonic() - begun >= 1.0
