"""The planner's own process: answers, errors, death, patience."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import GI, NOW, cluster, job, node_object
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.planner.process import NICENESS
from synergy_extender.planner.worker import PlanFailed, PlanWorker
from synergy_extender.snapshot.snapshot import build_snapshot

SNAPSHOT = build_snapshot(
    cluster([node_object("n1")], [job("a", gpus=8), job("b")]), mode="round", now=1e6, round_s=20
).snapshot
CONFIG = PlanConfig(policy="fifo", mechanism="tune")


async def test_the_child_plans_as_the_planner_does() -> None:
    worker = PlanWorker(timeout_s=60)
    try:
        planned = await worker.plan(SNAPSHOT, CONFIG)
        assert planned.plan == plan(SNAPSHOT, CONFIG)
        assert planned.seconds > 0
        assert worker.pid is not None
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(19, own + NICENESS), "who filters goes first"
    finally:
        await worker.close()


async def test_a_child_that_was_started_before_answers_the_first_question() -> None:
    worker = PlanWorker(timeout_s=60)
    try:
        await asyncio.gather(worker.start(), worker.start())
        first = worker.pid
        assert first is not None
        assert (await worker.plan(SNAPSHOT, CONFIG)).plan == plan(SNAPSHOT, CONFIG)
        assert worker.pid == first
        os.kill(first, signal.SIGKILL)
        with suppress(PlanFailed):  # if it is called before the death is known
            await worker.plan(SNAPSHOT, CONFIG)
        await worker.start()
        assert worker.pid not in (first, None)
    finally:
        await worker.close()


async def test_a_child_that_cannot_be_started_is_the_next_plan_s_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    worker = PlanWorker(timeout_s=60)
    await worker.start()
    assert worker.pid is None
    with pytest.raises(OSError, match="nowhere"):
        await worker.plan(SNAPSHOT, CONFIG)


async def test_the_child_keeps_profiles_and_plans_with_those_that_hold_now() -> None:
    def matrix(*speeds: float) -> dict[str, Any]:
        axis = [1000 * (i + 1) for i in range(len(speeds))]
        given = {"gpuType": "V100", "cpuMillis": axis, "memoryBytes": [GI], "stepsPerSecond": [[s] for s in speeds]}
        return {"profile": {"state": "Complete", "matrices": [given]}}

    worker = PlanWorker(timeout_s=60)
    first, other = job("a", status=matrix(1, 5)), job("b", status=matrix(2))
    try:
        for jobs in ([first, other], [first, other], [job("a", status=matrix(1, 2, 9)), other], [other], [first]):
            snapshot = build_snapshot(cluster([node_object("n1")], jobs), mode="round", now=NOW, round_s=20).snapshot
            assert (await worker.plan(snapshot, CONFIG)).plan == plan(snapshot, CONFIG)
    finally:
        await worker.close()


async def test_a_solver_that_is_given_no_time_leaves_the_last_allocation_in_force() -> None:
    worker = PlanWorker(timeout_s=60)
    config = PlanConfig(policy="makespan", mechanism="tune")
    try:
        first = await worker.plan(SNAPSHOT, config, 60.0)
        assert first.plan == plan(SNAPSHOT, config)
        served = await worker.plan(replace(SNAPSHOT, now=SNAPSHOT.now + 20), config, 0.0)
        assert (served.plan.shares_from, served.plan.allocations) == ("last", first.plan.allocations)
    finally:
        await worker.close()


async def test_an_error_of_the_planner_is_told_and_the_child_lives_on() -> None:
    worker = PlanWorker(timeout_s=60)
    try:
        with pytest.raises(PlanFailed, match="policy: 'whim' is not there"):
            await worker.plan(SNAPSHOT, PlanConfig(policy="whim"))
        assert (await worker.plan(SNAPSHOT, CONFIG)).plan.policy == "fifo"
    finally:
        await worker.close()


async def test_after_the_child_was_killed_another_is_started() -> None:
    worker = PlanWorker(timeout_s=60)
    try:
        await worker.plan(SNAPSHOT, CONFIG)
        first = worker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with suppress(PlanFailed):  # if it is called before the death is known
            await worker.plan(SNAPSHOT, CONFIG)
        assert (await worker.plan(SNAPSHOT, CONFIG)).plan == plan(SNAPSHOT, CONFIG)
        assert worker.pid != first
    finally:
        await worker.close()


async def test_a_plan_that_takes_too_long_is_given_up() -> None:
    worker = PlanWorker(timeout_s=0.01)  # no child starts in that time
    with pytest.raises(PlanFailed, match=r"more than 0\.01 s"):
        await worker.plan(SNAPSHOT, CONFIG)
    assert worker.pid is None


async def test_the_answer_of_a_call_that_was_given_up_is_never_taken_for_the_next_ones() -> None:
    worker = PlanWorker(timeout_s=60)
    try:
        await worker.plan(SNAPSHOT, CONFIG)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)
        given_up = asyncio.create_task(worker.plan(SNAPSHOT, CONFIG))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        other = PlanConfig(policy="las", mechanism="proportional")
        assert (await worker.plan(SNAPSHOT, other)).plan == plan(SNAPSHOT, other)
    finally:
        await worker.close()
