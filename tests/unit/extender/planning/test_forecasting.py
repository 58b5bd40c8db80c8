"""The leader's forecasts: what jobs are told of them, how right they were, and how often they are made."""

import asyncio
import copy
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import NOW, allocation, cluster, job, job_object, key, node_object, share
from support.extender.leads import Leads
from support.waiting import eventually
from synergy_extender.app import ESTIMATED_START, WRITTEN
from synergy_extender.decisions.estimates import Estimate
from synergy_extender.forecasts.question import ForecastAnswer, ForecastQuestion, StartForecast
from synergy_extender.forecasts.worker import ForecastFailed, ForecastWorker
from synergy_extender.metrics import Metrics
from synergy_extender.planning import forecasting
from synergy_extender.planning.forecasting import ForecastLoop, Forecasts, pause_after
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.writing.write_budget import WriteBudget
from synergy_kube.resources import TRAINING_JOBS
from synergy_kube.undeclared import undeclared

NAMES = {f"team/{name}": key(name) for name in ("soon", "later", "never")}


def answer(*starts: tuple[str, float, float, float]) -> ForecastAnswer:
    return ForecastAnswer(
        tuple(StartForecast(f"team/{name}", NOW + a, NOW + b, NOW + c) for name, a, b, c in starts), 10
    )


def sample(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"kube_synergy_forecast_{name}", labels) or 0.0


def off(metrics: Metrics, reason: str) -> float | None:
    return metrics.registry.get_sample_value("kube_synergy_forecasts_off", {"reason": reason})


def test_jobs_are_told_the_median_and_the_far_end() -> None:
    forecasts = Forecasts(Metrics(), enabled=True)
    assert forecasts.estimates is None
    forecasts.take(answer(("soon", 1, 2, 3), ("later", 5, 6, inf), ("never", 7, inf, inf)), NAMES, NOW)
    assert forecasts.estimates == {key("soon"): Estimate(NOW + 2, NOW + 3), key("later"): Estimate(NOW + 6, None)}
    forecasts.forget()
    assert forecasts.estimates is None


def test_after_failures_jobs_are_told_nothing_rather_than_what_is_old() -> None:
    metrics = Metrics()
    forecasts = Forecasts(metrics, enabled=True)
    forecasts.take(answer(("soon", 1, 2, 3)), NAMES, NOW)
    for _ in range(2):
        forecasts.failed()
    forecasts.take(answer(("soon", 1, 2, 3)), NAMES, NOW)
    for _ in range(2):
        forecasts.failed()
        assert forecasts.told == {key("soon"): Estimate(NOW + 2, NOW + 3)}
    assert off(metrics, "failures") == 0
    forecasts.failed()
    assert forecasts.told == {}
    assert off(metrics, "failures") == 1
    forecasts.take(answer(("soon", 1, 2, 3)), NAMES, NOW)
    assert off(metrics, "failures") == 0


def test_who_leads_no_more_does_not_say_that_forecasts_fail() -> None:
    metrics = Metrics()
    forecasts = Forecasts(metrics, enabled=True)
    for _ in range(3):
        forecasts.failed()
    forecasts.forget()
    assert off(metrics, "failures") == 0
    forecasts.failed()
    assert off(metrics, "failures") == 0


def test_what_an_older_schema_does_not_have_is_not_told() -> None:
    own = WRITTEN[TRAINING_JOBS]
    older = copy.deepcopy(own)
    for name in ("estimatedStart", "estimatedStartBy"):
        del older["properties"]["status"]["properties"]["queue"]["properties"][name]
    assert ESTIMATED_START in undeclared(own, older)
    assert ESTIMATED_START not in undeclared(own, own)
    metrics = Metrics()
    forecasts = Forecasts(metrics, enabled=True)
    forecasts.take(answer(("soon", 1, 2, 3)), NAMES, NOW)
    assert forecasts.told == forecasts.estimates
    forecasts.declared = False
    assert forecasts.told is None
    assert off(metrics, "definitions") == 1
    forecasts.declared = True
    assert off(metrics, "definitions") == 0


def test_without_forecasts_what_was_told_is_taken_away() -> None:
    forecasts = Forecasts(Metrics(), enabled=False)
    assert forecasts.estimates == {}
    forecasts.forget()
    assert forecasts.estimates == {}


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        ({"allocation": allocation(share("n1"))}, 1.0),
        ({"allocation": allocation(share("n1"), purpose="Profile")}, 0.0),
        ({"allocation": allocation(share("n1"), state="Released")}, 0.0),
        ({}, 0.0),
    ],
)
def test_a_start_is_measured_when_the_job_gets_gpus_to_train(status: dict[str, Any], counts: float) -> None:
    metrics = Metrics()
    forecasts = Forecasts(metrics, enabled=True)
    forecasts.take(answer(("soon", 500, 600, 700)), NAMES, NOW)
    state = cluster([node_object("n1")], [job("soon", status=status)])
    for _ in range(2):
        forecasts.note_starts(state, NOW + 800)
    assert sample(metrics, "start_error_seconds_count", horizon="5m") == counts
    assert sample(metrics, "start_error_seconds_sum", horizon="5m") == 200.0 * counts
    assert sample(metrics, "starts_total", horizon="5m", place="late") == counts
    assert sample(metrics, "start_error_seconds_count", horizon="1h") == 0.0


def test_estimates_are_written_at_a_measured_pace() -> None:
    now = 0.0
    budget = WriteBudget(5.0, lambda: now)
    assert budget.left == 5
    budget.spend(5)
    assert budget.left == 0
    now = 0.5
    assert budget.left == 2
    now = 1000.0
    assert budget.left == 25


class Asked(ForecastWorker):
    """A process that answers at once, or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__(1.0)
        self.questions: list[ForecastQuestion] = []
        self._fails = fails

    async def forecast(self, question: ForecastQuestion) -> ForecastAnswer:
        self.questions.append(question)
        if self._fails:
            raise ForecastFailed("no answer")
        return answer(("j", 1, 2, 3))


@dataclass
class Stage:
    """A loop at work on a cluster with one job."""

    asked: Asked
    lead: Leads
    metrics: Metrics
    forecasts: Forecasts
    notified: asyncio.Event

    async def seconds_until_asked(self, times: int) -> float:
        async def enough() -> bool:
            return len(self.asked.questions) == times

        begun = asyncio.get_running_loop().time()
        await eventually(enough, seconds=10, what=f"forecast {times}", every=0.01)
        return asyncio.get_running_loop().time() - begun


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "_LOOK_S", 0.01)
    monkeypatch.setattr(forecasting, "EVERY_S", 0.2)


@asynccontextmanager
async def at_work(status: dict[str, Any], *, fails: bool = False, leading: bool = True) -> AsyncIterator[Stage]:
    metrics = Metrics()
    stage = Stage(Asked(fails=fails), Leads(leading), metrics, Forecasts(metrics, enabled=True), asyncio.Event())
    async with following(WatchServer(job_object(status=status))) as (_, cache):
        loop = ForecastLoop(
            cache, stage.asked, stage.forecasts, metrics,
            lead=stage.lead, policy=PolicyInForce, clock=lambda: NOW, notify=stage.notified.set,
        )  # fmt: skip
        task = asyncio.create_task(loop.run())
        try:
            yield stage
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fails", [False, True])
async def test_it_asks_while_jobs_wait_and_then_rests(fails: bool) -> None:
    async with at_work({}, fails=fails) as stage:
        assert await stage.seconds_until_asked(2) >= 0.2
    assert sample(stage.metrics, "failures_total") == (2.0 if fails else 0.0)
    assert stage.notified.is_set() is not fails
    assert stage.forecasts.estimates == (None if fails else {key("j"): Estimate(NOW + 2, NOW + 3)})


@pytest.mark.usefixtures("quick")
async def test_it_asks_nothing_while_no_job_waits() -> None:
    async with at_work({"phase": "Succeeded"}) as stage:
        await asyncio.sleep(0.1)
        assert not stage.asked.questions


TOLD = {"queue": {"position": 1, "reason": "LowerPriority", "estimatedStart": "2026-01-01T00:00:00Z"}}


@pytest.mark.usefixtures("quick")
async def test_a_new_leader_has_other_things_to_do_first_if_jobs_know_their_times() -> None:
    async with at_work(TOLD, leading=False) as stage:
        await asyncio.sleep(0.3)
        assert not stage.asked.questions
        stage.lead.leading = True
        assert await stage.seconds_until_asked(1) >= 0.15


async def test_a_new_leader_forecasts_at_once_if_no_job_knows_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "_LOOK_S", 0.01)
    async with at_work({"queue": {"position": 1, "reason": "LowerPriority"}}) as stage:
        await stage.seconds_until_asked(1)  # far less than a minute


@pytest.mark.usefixtures("quick")
async def test_who_loses_the_lead_between_two_forecasts_forgets_and_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with at_work(TOLD) as stage:
        await stage.seconds_until_asked(1)
        monkeypatch.setattr(forecasting, "EVERY_S", 60.0)
        stage.lead.leading = False

        async def forgotten() -> bool:
            return stage.forecasts.estimates is None

        await eventually(forgotten, seconds=10, what="estimates to be forgotten", every=0.01)
        stage.lead.leading = True
        await asyncio.sleep(0.5)
        assert len(stage.asked.questions) == 1


def test_after_a_long_forecast_the_rest_is_long_as_well() -> None:
    assert [pause_after(used) for used in (None, 0.0, 1.0, 30.0)] == [0.0, 60.0, 60.0, 600.0]


async def test_what_a_process_has_used_is_measured() -> None:
    before = forecasting._used_by_children_s()
    busy = "sum(range(10**7))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", busy)
    assert await process.wait() == 0
    assert forecasting._used_by_children_s() - before > 0.05
