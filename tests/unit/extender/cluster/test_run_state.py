"""Where a job stands in the hand-shake of its run."""

from typing import Any

import pytest

from support.extender.cluster import NOW, allocation, job, share
from synergy_api.timestamps import format_time
from synergy_extender.cluster.run_state import (
    RunState,
    attained_gpu_seconds,
    next_run,
    open_run,
    received_seconds,
    run_state,
    steps_done,
)

PLACE = share("n1")
LOST = {"run": 1, "outcome": "Evicted", "reason": "WorkerLost: run 1: worker 0 was lost"}
REQUEST = {"state": "Waiting", "request": {"gpuType": "V100", "gpus": 1, "cpuMillis": 1000, "memoryBytes": 1}}


@pytest.mark.parametrize(
    ("status", "spec", "want"),
    [
        ({}, {}, RunState.WAITING),
        ({"phase": "Pending"}, {}, RunState.IDLE),
        ({"phase": "Profiling"}, {}, RunState.IDLE),
        ({"phase": "Profiling", "profile": REQUEST}, {}, RunState.WAITING),
        ({"phase": "Queued"}, {"suspend": True}, RunState.IDLE),
        ({"phase": "Succeeded"}, {}, RunState.IDLE),
        ({"service": {"retryAt": format_time(NOW + 5)}}, {}, RunState.BACKING_OFF),
        ({"service": {"retryAt": format_time(NOW - 5)}}, {}, RunState.WAITING),
        ({"service": {"retryAt": format_time(NOW + 3600)}}, {}, RunState.WAITING),
        ({"service": {"retryAt": format_time(NOW + 600), "refusals": 7}}, {}, RunState.BACKING_OFF),
        ({"service": {"retryAt": format_time(NOW + 720), "last": LOST}}, {}, RunState.BACKING_OFF),
        ({"allocation": allocation(PLACE)}, {}, RunState.HOLDING),
        ({"allocation": allocation(PLACE), "phase": "Running"}, {"suspend": True}, RunState.HOLDING),
        ({"allocation": allocation(PLACE, state="Revoked")}, {}, RunState.LEAVING),
        ({"allocation": allocation(PLACE, state="Revoked"), "service": {"endedRun": 1}}, {}, RunState.WAITING),
        ({"allocation": allocation(PLACE), "service": {"endedRun": 1}, "phase": "Succeeded"}, {}, RunState.IDLE),
        ({"allocation": allocation(run=2, state="Released"), "service": {"endedRun": 1}}, {}, RunState.WAITING),
    ],
)
def test_the_standing_follows_from_phase_allocation_and_ended_run(
    status: dict[str, Any], spec: dict[str, Any], want: RunState
) -> None:
    assert run_state(job("j", status=status, spec=spec), NOW) is want


def test_a_job_that_is_deleted_leaves_or_is_idle() -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert run_state(job("j", **going), NOW) is RunState.IDLE
    assert run_state(job("j", status={"allocation": allocation(PLACE)}, **going), NOW) is RunState.LEAVING


def test_the_next_run_is_above_every_run_that_was() -> None:
    assert next_run(job("j")) == 1
    assert next_run(job("j", status={"service": {"run": 4}})) == 5
    assert next_run(job("j", status={"service": {"run": 1}, "allocation": allocation(PLACE, run=2)})) == 3


def test_a_run_is_over_only_when_it_says_so() -> None:
    held = {"allocation": allocation(PLACE, run=2)}
    last = {"run": 2, "outcome": "Yielded"}
    assert open_run(job("j", status={**held, "service": {"endedRun": 1, "last": last}})) is not None
    assert open_run(job("j", status={**held, "service": {"endedRun": 2, "last": last}})) is None


def test_attained_and_received_service_include_the_open_run() -> None:
    service = {
        "runningSince": format_time(NOW - 10),
        "runningGpuType": "V100",
        "attainedGPUSeconds": 100.0,
        "receivedSeconds": {"V100": 30.0, "T4": 5.0},
    }
    running = job("j", gpus=4, status={"service": service})
    assert attained_gpu_seconds(running, NOW) == pytest.approx(140.0)
    assert received_seconds(running, NOW) == pytest.approx({"V100": 40.0, "T4": 5.0})
    assert attained_gpu_seconds(running, NOW - 60) == 100.0  # a clock that is behind never takes service away


@pytest.mark.parametrize(
    ("status", "want"),
    [
        ({}, 0),
        ({"progress": {"run": 1, "steps": 70}}, 70),
        ({"progress": {"run": 1, "steps": 5000}}, 1000),
        ({"progress": {"run": 1, "steps": 70}, "service": {"last": {"run": 1, "outcome": "Yielded", "step": 80}}}, 80),
        ({"progress": {"run": 2, "steps": 90}, "service": {"last": {"run": 1, "outcome": "Yielded", "step": 80}}}, 90),
        ({"service": {"last": {"run": 1, "outcome": "Failed"}}}, 0),
    ],
)
def test_steps_done_are_what_the_newest_word_says(status: dict[str, Any], want: int) -> None:
    assert steps_done(job("j", status=status)) == want
