"""The observer sees each promise broken that a TrainingJob's status can break."""

from itertools import pairwise
from typing import Any

import pytest

from chaos.observer.job_promises import check_job

GRANTED = {
    "run": 2,
    "state": "Granted",
    "admitted": True,
    "leaseUntil": "2027-01-01T00:00:10Z",
    "workers": [{"node": "n1", "gpus": 2, "cpuMillis": 2000, "memoryBytes": 200}],
    "stepsPerSecond": 2.0,
    "proportionalStepsPerSecond": 1.0,
}
SERVICE = {"run": 2, "endedRun": 1, "failures": 1, "attainedGPUSeconds": 10.0, "runningSince": "2027-01-01T00:00:00Z"}


def job(**status: Any) -> dict[str, Any]:
    whole = {"phase": "Running", "allocation": GRANTED, "service": SERVICE, **status}
    return {"metadata": {"name": "j"}, "spec": {"gpus": 2, "steps": 100}, "status": whole}


def test_a_good_life_breaks_nothing() -> None:
    renewed = {**GRANTED, "leaseUntil": "2027-01-01T00:00:20Z"}
    closed = {**SERVICE, "endedRun": 2, "attainedGPUSeconds": 30.0, "runningSince": None}
    revoked = {**renewed, "state": "Revoked"}
    versions = [
        job(phase="Starting", service={"run": 1, "endedRun": 1, "attainedGPUSeconds": 10.0, "failures": 1}),
        job(),
        job(allocation=renewed),
        job(allocation=revoked, phase="Yielding"),
        job(allocation=revoked, phase="Queued", service=closed),
        job(allocation={**revoked, "state": "Released", "workers": []}, phase="Queued", service=closed),
        job(allocation={**GRANTED, "run": 3}, phase="Queued", service=closed),
    ]
    assert list(check_job(None, versions[0])) == []
    for old, new in pairwise(versions):
        assert list(check_job(old, new)) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"phase": "Succeeded"}, {"phase": "Queued"}, "was Succeeded"),
        ({}, {"progress": {"steps": 101}}, "101 of 100"),
        ({}, {"service": {**SERVICE, "attainedGPUSeconds": 9.0}}, "attained service fell"),
        ({}, {"service": {**SERVICE, "run": 3}}, "never closed"),
        ({}, {"service": {**SERVICE, "runningSince": None}}, "without having ended"),
        ({}, {"service": {**SERVICE, "failures": 0}}, "failures fell"),
        ({}, {"allocation": {**GRANTED, "leaseUntil": "2027-01-01T00:00:09Z"}}, "cut short"),
        ({}, {"allocation": {**GRANTED, "admitted": False}}, "not any more"),
        ({}, {"allocation": {**GRANTED, "run": 1}}, "after run 2"),
        ({}, {"allocation": {**GRANTED, "stepsPerSecond": 0.5}}, "its share gives"),
        ({}, {"allocation": {**GRANTED, "workers": [{**GRANTED["workers"][0], "gpus": 1}]}}, "1 GPUs for 2"),  # type: ignore[index]
        ({}, {"allocation": {**GRANTED, "workers": [{**GRANTED["workers"][0], "node": "n2"}]}}, "was moved"),  # type: ignore[index]
        ({"allocation": {**GRANTED, "state": "Revoked"}}, {}, "granted again"),
        (
            {},
            {
                "allocation": {
                    **GRANTED,
                    "workers": [
                        {"node": "n1", "gpus": 1, "cpuMillis": 1000, "memoryBytes": 100},
                        {"node": "n2", "gpus": 1, "cpuMillis": 3000, "memoryBytes": 100},
                    ],
                }
            },
            "CPU is not in proportion",
        ),
    ],
)
def test_each_broken_promise_is_seen(old: dict[str, Any], new: dict[str, Any], words: str) -> None:
    assert words in " ".join(check_job(job(**old), job(**new)))


@pytest.mark.parametrize(("preemption", "broken"), [("Never", 1), ("Checkpoint", 0)])
def test_who_may_not_be_preempted_is_not_told_to_leave(preemption: str, broken: int) -> None:
    old, new = job(), job(allocation={**GRANTED, "state": "Revoked"})
    for item in (old, new):
        item["spec"]["preemption"] = preemption
    assert len(list(check_job(old, new))) == broken
