"""A job's sensitivity surface, and what has happened to it."""

from typing import Any

import pytest

from support.extender.cluster import GI, NOW, allocation, job_object, share
from synergy_api.timestamps import format_time
from synergy_view.history import Happening, history, told_by
from synergy_view.seen import SeenJob, read
from synergy_view.surface import surfaces

MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 4000], "memoryBytes": [GI, 2 * GI], "stepsPerSecond": [[1, 2], [3, 4]]}


def seen(**more: Any) -> SeenJob:
    return read(job_object("j", **more))


def test_a_measured_surface_has_demand_confidence_and_what_is_given() -> None:
    profile = {
        "state": "Complete",
        "matrices": [MATRIX],
        "demand": [{"gpuType": "V100", "gpus": 1, "cpuMillis": 4000, "memoryBytes": GI}],
        "confidence": [{"gpuType": "V100", "level": "High", "uncertainty": 0.03, "runs": 5}],
        "points": [
            {"gpuType": "V100", "cpuMillis": 4000, "memoryBytes": GI, "stepsPerSecond": 3.0},
            {"gpuType": "T4", "cpuMillis": 1000, "memoryBytes": GI, "stepsPerSecond": 3.0},
        ],
    }
    held = allocation(share("n1", cpu_millis=1500, memory_bytes=GI), share("n2", cpu_millis=500, memory_bytes=GI))
    (surface,) = surfaces(seen(status={"phase": "Running", "profile": profile, "allocation": held}))
    assert (surface.demand, surface.given, surface.best) == ((4000, GI), (2000, 2 * GI), 4.0)
    assert (surface.confidence, surface.uncertainty, surface.runs, surface.measured) == ("High", 0.03, 5, (4000,))


def test_a_provided_surface_is_that_of_the_spec() -> None:
    (surface,) = surfaces(seen(spec={"profile": {"mode": "Provided", "matrices": [MATRIX]}}))
    assert (surface.gpu_type, surface.steps_per_s, surface.confidence) == ("V100", ((1.0, 2.0), (3.0, 4.0)), "")
    assert (surface.demand, surface.given) == (None, None)


def test_a_job_without_a_profile_has_no_surface() -> None:
    assert surfaces(seen()) == []


def event(reason: str, at: float) -> dict[str, Any]:
    return {"metadata": {}, "involvedObject": {"uid": "uid-j"}, "reason": reason, "message": "words",
            "lastTimestamp": format_time(at)}  # fmt: skip


def saying(event: dict[str, Any]) -> Happening:
    told = told_by(event)
    assert told is not None
    return told[1]


def test_the_history_is_in_the_order_of_time() -> None:
    status = {"phase": "Succeeded", "startTime": format_time(NOW - 60), "completionTime": format_time(NOW)}
    told = history(seen(status=status), [saying(event("Granted", NOW - 61))])
    assert [one.what for one in told.happenings] == ["Created", "Granted", "FirstStart", "Succeeded"]


def test_events_of_the_newer_api_are_read_too() -> None:
    new = {
        "metadata": {"creationTimestamp": format_time(NOW)},
        "regarding": {"uid": "uid-j"},
        "reason": "R",
        "note": "n",
    }
    assert told_by(new) == ("uid-j", Happening(NOW, "R", "n"))


@pytest.mark.parametrize(
    "change", [{"involvedObject": {}}, {"lastTimestamp": None}, {"lastTimestamp": "0000-01-01T00:00:00Z"}]
)
def test_an_event_without_an_object_or_a_time_says_nothing(change: dict[str, Any]) -> None:
    assert told_by({**event("R", NOW), **change}) is None


def test_the_sums_of_the_runs() -> None:
    last = {"run": 3, "outcome": "Yielded", "reason": "it was revoked"}
    service = {"run": 3, "preemptions": 2, "failures": 1, "receivedSeconds": {"V100": 90.0}, "last": last}
    assert history(seen(status={"service": service}), []).totals == (
        "3 runs, 2 preemptions, 1 failure",
        "90s on V100 in ended runs",
        "the newest ended run, 3, yielded: it was revoked",
    )


def test_each_preemption_is_told_with_its_rule() -> None:
    record = {"at": format_time(NOW + 5), "run": 3, "rule": "Guarantee", "by": ["ml/theirs"]}
    told = history(seen(status={"preemptions": [record]}), []).happenings[-1]
    expected = (NOW + 5, "Preempted by Guarantee", "run 3: ml/theirs gets the GPUs by its tenant's guarantee")
    assert (told.at_s, told.what, told.message) == expected
