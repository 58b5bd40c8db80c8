"""A forecast of a cluster, and the process that makes it."""

from math import inf
from pathlib import Path
from typing import Any

import pytest

from support.extender.cluster import GI, NOW, allocation, cluster, foreign, job, node_object, share, worker
from synergy_api.timestamps import format_time
from synergy_extender.cluster.state import ClusterState
from synergy_extender.forecasts import worker as worker_module
from synergy_extender.forecasts.process import answer
from synergy_extender.forecasts.question import StartForecast
from synergy_extender.forecasts.worker import ForecastFailed, ForecastWorker
from synergy_extender.planning.forecasting import question_of
from synergy_extender.planning.policy import PolicyInForce

MATRIX = {"gpuType": "V100", "cpuMillis": [1000], "memoryBytes": [GI], "stepsPerSecond": [[1.0]]}
PROFILED = {"profile": {"state": "Complete", "matrices": [MATRIX]}}


def held(name: str, node: str, steps: int, **status: Any) -> Any:
    place = allocation(share(node, gpus=8), stepsPerSecond=1.0)
    since = {"runningSince": format_time(NOW - 50), "runningGpuType": "V100", "run": 1}
    more = {"phase": "Running", "allocation": place, "service": since}
    return job(name, gpus=8, status={**PROFILED, **more, **status}, spec={"steps": steps})


def crowded(*more: Any) -> ClusterState:
    """`runs` has all GPUs for 500 more seconds."""
    return cluster([node_object("n1")], [held("runs", "n1", 500), *more], [worker("runs", node="n1", gpus=8)])


def waits(name: str = "waits", *, profiled: bool = True, gpus: int = 8) -> Any:
    return job(name, gpus=gpus, status=PROFILED if profiled else {}, spec={"steps": 100})


def starts(state: ClusterState) -> dict[str, StartForecast]:
    question = question_of(state, PolicyInForce(), NOW)
    return {one.job: one for one in answer(question).starts}


def test_a_job_starts_when_the_one_before_it_has_ended() -> None:
    (found,) = starts(crowded(waits())).values()
    assert found.job == "team/waits"
    assert 500 <= found.p50 - NOW <= 500 + 2 * 300
    assert found.p10 <= found.p50 <= found.p90


def test_only_waiting_jobs_of_which_something_is_known_have_a_forecast() -> None:
    assert set(starts(crowded(waits(), waits("unknown", profiled=False), waits("large", gpus=9)))) == {"team/waits"}


def test_the_past_has_jobs_that_have_ended_too() -> None:
    ended = {"phase": "Succeeded", "completionTime": format_time(NOW - 10)}
    state = crowded(waits(), job("past", gpus=2, status={**PROFILED, **ended}))
    snapshot = question_of(state, PolicyInForce(), NOW).snapshot
    assert [(one.gpus, one.finish_s, one.steps) for one in snapshot.history] == [
        (2, NOW - 10, 1000.0), (8, None, 500.0), (8, None, 100.0),
    ]  # fmt: skip
    profile = snapshot.model_profiles[snapshot.history[0].model]["2"]["V100"]
    assert profile.steps_per_s == ((1.0,),)
    assert {one.name for one in snapshot.jobs} == {"team/runs", "team/waits"}


def test_pods_that_no_plan_moves_keep_a_job_waiting_for_ever() -> None:
    state = cluster([node_object("n1")], [waits()], [foreign("other", node="n1", gpus=1, phase="Running")])
    found = starts(state)
    assert not found or found["team/waits"].p50 == inf


async def test_the_process_says_what_the_function_says() -> None:
    question = question_of(crowded(waits()), PolicyInForce(), NOW)
    assert await ForecastWorker(60.0).forecast(question) == answer(question)


async def test_a_process_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ForecastFailed, match=r"more than 0\.01 s"):
        await ForecastWorker(0.01).forecast(question_of(crowded(waits()), PolicyInForce(), NOW))


async def test_a_process_that_dies_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_CHILD", "synergy_extender.none")
    with pytest.raises(ForecastFailed, match="ended with 1"):
        await ForecastWorker(60.0).forecast(question_of(crowded(waits()), PolicyInForce(), NOW))


async def test_a_process_that_needs_too_much_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starved = "from synergy_extender.forecasts import process\nprocess.MOST_BYTES = 1 << 20\nprocess.main()\n"
    (tmp_path / "starved_forecast.py").write_text(starved)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(worker_module, "_CHILD", "starved_forecast")
    many = crowded(*(waits(f"waits-{index}") for index in range(2000)))
    with pytest.raises(ForecastFailed, match="needs more than 400 MiB"):
        await ForecastWorker(60.0).forecast(question_of(many, PolicyInForce(), NOW))
