"""A cluster's jobs as inputs of the simulator, and what its last rounds decided."""

from typing import Any

import pytest

from support.extender.cluster import GI, NOW, allocation, job_object, node_object, share
from synergy_api.cluster.pools import node_capacities
from synergy_api.timestamps import format_time
from synergy_view.export import export
from synergy_view.rounds import rounds
from synergy_view.seen import SeenJob, read

MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 3000], "memoryBytes": [GI], "stepsPerSecond": [[1.0], [2.0]]}
PROFILED = {"profile": {"state": "Complete", "matrices": [MATRIX]}}


def seen(name: str, age: float = 100.0, **more: Any) -> SeenJob:
    return read(job_object(name, creationTimestamp=format_time(NOW - age), **more))


def test_a_job_with_matrices_is_exported_as_it_is() -> None:
    progress = {"run": 1, "steps": 7, "largestTensorBytes": 50, "modelBytes": 200}
    spec = {"tenant": "vision", "weight": 2.0, "batchSize": 64, "slo": {"deadline": format_time(NOW + 500)}}
    one = seen("j", gpus=2, spec=spec, status={**PROFILED, "progress": progress})
    found = export(
        [one, seen("first", age=160, status=PROFILED), seen("old", age=9999, status=PROFILED)], [], NOW - 1000
    )
    assert [(row["job_id"], row["arrival_s"]) for row in found.trace] == [("team/first", 0), ("team/j", 60)]
    row = found.trace[1]
    assert {name: row[name] for name in ("gpus", "steps", "tenant", "weight", "slo_s", "batch_size", "skew")} == {
        "gpus": 2, "steps": 1000, "tenant": "vision", "weight": 2.0, "slo_s": 600, "batch_size": 64, "skew": 0.25,
    }  # fmt: skip
    matrix = found.profiles["models"][row["model"]]["V100"]["2"]
    assert matrix == {"cpus": [1.0, 3.0], "memory_gib": [1.0], "steps_per_s": [[1.0], [2.0]]}
    assert (found.cluster, found.notes) == (None, ("no GPU node can be seen: write cluster.yaml yourself",))


@pytest.mark.parametrize(
    ("status", "speed"),
    [
        ({"allocation": allocation(share("n1")), "progress": {"run": 1, "steps": 5, "stepsPerSecond": 4.0}}, 4.0),
        ({"service": {"receivedSeconds": {"V100": 50.0}}, "progress": {"run": 1, "steps": 100}}, 2.0),
        ({"service": {"receivedSeconds": {"V100": 50.0, "T4": 9.0}}, "progress": {"run": 1, "steps": 100}}, None),
        ({}, None),
    ],
)
def test_a_job_without_matrices_has_its_measured_speed_or_is_left_out(
    status: dict[str, Any], speed: float | None
) -> None:
    found = export([seen("j", status=status)], node_capacities([node_object("n1")], []), 0.0)
    assert len(found.trace) == (speed is not None)
    assert found.notes[0].startswith("team/j: is left out" if speed is None else "team/j: has no matrices")
    if speed is not None:
        matrix = found.profiles["models"][found.trace[0]["model"]]["V100"]["1"]
        assert matrix["steps_per_s"] == [[speed]]


def test_jobs_that_may_use_other_types_are_other_models() -> None:
    other = {**MATRIX, "gpuType": "T4"}
    both = {"profile": {"state": "Complete", "matrices": [MATRIX, other]}}
    found = export([seen("any", status=both), seen("picky", spec={"gpuTypes": ["T4"]}, status=both)], [], 0.0)
    models = {row["job_id"]: row["model"] for row in found.trace}
    assert models["team/picky"] == f"{models['team/any']}@T4"
    assert {name: set(types) for name, types in found.profiles["models"].items()} == {
        models["team/any"]: {"V100", "T4"},
        models["team/picky"]: {"T4"},
    }


def test_nodes_that_are_alike_are_one_pool() -> None:
    nodes = [node_object("a"), node_object("b"), node_object("c", gpu_type="T4", gpus=4), node_object("d", ready=False)]
    cluster = export([], node_capacities(nodes, []), 0.0).cluster
    assert cluster is not None
    assert [(one["gpu_type"], one["nodes"], one["gpus_per_node"]) for one in cluster["pools"]] == [
        ("V100", 2, 8), ("T4", 1, 4),
    ]  # fmt: skip


def event(at: float, reason: str, name: str = "j", message: str = "words", kind: str = "TrainingJob") -> dict[str, Any]:
    involved = {"kind": kind, "namespace": "team", "name": name, "uid": f"uid-{name}"}
    return {"metadata": {}, "involvedObject": involved, "lastTimestamp": format_time(at), "reason": reason,
            "message": message}  # fmt: skip


def test_events_are_told_by_round_the_newest_first() -> None:
    events = [
        event(1000, "WorkersStarting"), event(1010, "WorkersRunning"), event(1250, "Yielding", message="for team/b"),
        event(1250, "WorkersStarting", "b"), event(1255, "WorkersLeft"), event(1256, "NoFreeGPU"),
        event(1256, "ProfileMeasured"), event(1257, "Scheduled", kind="Pod"), event(1300, "WorkersRunning"),
    ]  # fmt: skip
    found = rounds([], events, 100.0, most=2)
    assert [(one.index, one.starts_s) for one in found] == [(13, 1300.0), (12, 1200.0)]
    assert [(one.job, one.what, one.reason) for one in found[1].decided] == [
        ("team/b", "started", "WorkersStarting"), ("team/j", "leaves", "Yielding"), ("team/j", "ended", "WorkersLeft"),
        ("team/j", "waits", "NoFreeGPU"),
    ]  # fmt: skip
    assert found[1].decided[1].message == "for team/b"
    (oldest,) = rounds([], events, 100.0, most=3)[2:]
    assert [one.reason for one in oldest.decided] == ["WorkersStarting"]


def test_a_run_that_no_event_tells_of_is_told_by_its_status() -> None:
    service = {"run": 1, "runningSince": format_time(1234), "runningGpuType": "V100"}
    held = {"phase": "Running", "allocation": allocation(share("n1", gpus=2)), "service": service}
    (found,) = rounds([seen("j", status=held), seen("w")], [], 100.0, most=5)
    assert (found.index, found.decided[0].job, found.decided[0].message) == (12, "team/j", "run 1 holds 2 V100 GPUs")
    assert [one.index for one in rounds([seen("j", status=held)], [event(1300, "WorkersRunning")], 100.0, most=5)] == [
        13
    ]
