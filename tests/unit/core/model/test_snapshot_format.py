"""Snapshots and plans as JSON."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from support.planner.snapshots import configs, snapshots
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.model.snapshot_format import (
    SnapshotError,
    parse_snapshot,
    plan_document,
    snapshot_document,
)
from synergy_core.plan import plan

DOCUMENT: dict[str, Any] = {
    "now": 0.0,
    "round_s": 300.0,
    "nodes": [
        {"name": "n1", "gpu_type": "V100", "gpus": 8, "cpu_millis": 24000, "memory_bytes": 536870912000,
         "gpus_used": 0, "cpu_millis_used": 0, "memory_bytes_used": 0, "replicas": 1}
    ],
    "jobs": [
        {"name": "team/j1", "gpus": 4, "arrival_s": 0.0, "weight": 1.0, "tenant": "team", "gpu_types": ["V100"],
         "profiles": {"V100": {"cpu_millis": [3000, 12000], "memory_bytes": [67108864000],
                               "steps_per_s": [[1.0], [2.4]]}},
         "steps_total": 100000, "steps_done": 0, "attained_gpu_s": 0.0, "waiting_s": 0.0, "received_s": {"V100": 0.0},
         "skew": 0.1, "sharing": False, "preemptible": True, "running": None}
    ],
}  # fmt: skip
RUNNING = {
    "job": "team/j1",
    "gpu_type": "V100",
    "workers": [{"node": "n1", "gpus": 4, "cpu_millis": 12000, "memory_bytes": 1}],
}
quick = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def test_a_snapshot_is_written_as_it_was_read() -> None:
    assert snapshot_document(parse_snapshot(json.dumps(DOCUMENT))) == DOCUMENT


def test_optional_fields_may_be_left_out() -> None:
    short = {"nodes": [], "jobs": [{"name": "a", "gpus": 1}]}
    job = parse_snapshot(json.dumps(short)).jobs[0]
    assert (job.weight, job.preemptible, job.running, job.steps_total) == (1.0, True, None, None)


@quick
@given(snapshots())
def test_every_snapshot_survives_writing_and_reading(snapshot: Snapshot) -> None:
    assert parse_snapshot(json.dumps(snapshot_document(snapshot))) == snapshot


@quick
@given(snapshots(), configs)
def test_every_plan_has_exactly_the_fields_of_the_format(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    document = json.loads(json.dumps(plan_document(result, seconds=0.5)))
    some = {name for name in ("promoted", "estimates", "isolated", "displaced") if getattr(result, name)}
    assert set(document) == some | {
        "allocations", "waiting", "preempted", "resized", "policy", "mechanism", "seconds"
    }  # fmt: skip
    assert document["seconds"] == 0.5
    for entry, allocation in zip(document["allocations"], result.allocations, strict=True):
        assert set(entry) == ({"estimated"} if allocation.estimated else set()) | {
            "job", "gpu_type", "steps_per_s", "proportional_steps_per_s", "workers", "shares_gpu_with"
        }  # fmt: skip
        assert entry["job"] == allocation.job
        further = {"further"} if allocation.workers[0].further else set()
        assert set(entry["workers"][0]) == {"node", "gpus", "cpu_millis", "memory_bytes"} | further
    assert all(set(entry) == {"job", "reason", "message"} for entry in document["waiting"])


Change = Callable[[dict[str, Any]], object]


def _job(document: dict[str, Any]) -> dict[str, Any]:
    job: dict[str, Any] = document["jobs"][0]
    return job


def _profile(document: dict[str, Any]) -> dict[str, Any]:
    profile: dict[str, Any] = _job(document)["profiles"]["V100"]
    return profile


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda d: _job(d).update(gpu=3), "jobs[0].gpu: unknown field; did you mean 'gpus'?"),
        (lambda d: d.update(jbos=[]), "jbos: unknown field; did you mean 'jobs'?"),
        (lambda d: _job(d).pop("gpus"), "jobs[0].gpus: missing; add it"),
        (lambda d: _job(d).update(gpus="4"), "jobs[0].gpus: input should be a valid integer, is '4'"),
        (lambda d: _job(d).update(gpus=4.5), "jobs[0].gpus: input should be a valid integer, is 4.5"),
        (lambda d: _job(d).update(gpus=0), "jobs[0].gpus: input should be greater than or equal to 1, is 0"),
        (lambda d: _job(d).update(gpus=[]), "jobs[0].gpus: input should be a valid integer"),
        (
            lambda d: _profile(d).update(steps_per_s=[[1.0]]),
            "jobs[0].profiles.V100.steps_per_s: has 1 rows for 2 CPU points; give one row per point",
        ),
        (
            lambda d: _profile(d).update(steps_per_s=[[1.0], [1.0, 2.0]]),
            "jobs[0].profiles.V100.steps_per_s[1]: has 2 values for 1 memory points; give one per point",
        ),
        (
            lambda d: _profile(d).update(steps_per_s=[[1.0], [float("nan")]]),
            "jobs[0].profiles.V100.steps_per_s[1][0]: input should be a finite number, is nan",
        ),
        *(
            (
                lambda d, speed=speed: _profile(d).update(steps_per_s=[[1.0], [speed]]),
                (
                    "jobs[0].profiles.V100.steps_per_s[1][0]: must be 0 or from 1e-06 to 1e+09 steps per second, "
                    f"is {speed:g}"
                ),
            )
            for speed in (-1.0, 1e-307, 1e18)
        ),
        (
            lambda d: _job(d).update(weight=1e-310),
            "jobs[0].weight: input should be greater than or equal to 0.000001, is 1e-310",
        ),
        (
            lambda d: _job(d).update(arrival_s=-1e300),
            "jobs[0].arrival_s: input should be greater than or equal to -1000000000000000, is -1e+300",
        ),
        (
            lambda d: _profile(d).update(cpu_millis=[12000, 3000]),
            "jobs[0].profiles.V100.cpu_millis[1]: 3000 is not above 12000; sort the axis",
        ),
        (lambda d: d["jobs"].append(_job(d)), "jobs[1].name: 'team/j1' is also jobs[0]; names must differ"),
        (lambda d: d["nodes"].append(d["nodes"][0]), "nodes[1].name: 'n1' is also nodes[0]; names must differ"),
        (
            lambda d: _job(d).update(placement="near"),
            "jobs[0].placement: input should be 'auto', 'consolidate', 'pack' or 'spread', is 'near'",
        ),
        (
            lambda d: _job(d).update(cpu_millis_min=5, cpu_millis_max=3),
            "jobs[0].cpu_millis_min: 5 is above cpu_millis_max 3; lower it",
        ),
        (
            lambda d: _job(d).update(received_s={"V100": 10.0}, received_spread_s={"V100": 10.5}),
            "jobs[0].received_spread_s.V100: 10.5 is above received_s.V100 10.0, of which it is a part; lower it",
        ),
        (
            lambda d: _job(d).update(received_s={"V100": 10.0}, received_spread_s={"V100": 10.0, "K80": 1.0}),
            "jobs[0].received_spread_s.K80: 1.0 is above received_s.K80 0.0, of which it is a part; lower it",
        ),
        (lambda d: _job(d).update(running={"job": "a"}), "jobs[0].running.gpu_type: missing; add it"),
        (
            lambda d: _job(d).update(running={**RUNNING, "job": "x"}),
            "jobs[0].running.job: is 'x', must be the job's own name 'team/j1'",
        ),
        (
            lambda d: _job(d).update(gpus=2, running=RUNNING),
            "jobs[0].running.workers: hold 4 GPUs, the job has 2; they must agree",
        ),
        (
            lambda d: _job(d).update(gpus=8, running={**RUNNING, "workers": RUNNING["workers"] * 2}),
            "jobs[0].running.workers: name a node twice; give one share per node",
        ),
    ],
)
def test_a_bad_snapshot_is_refused_with_one_line_that_names_the_field(change: Change, line: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    with pytest.raises(SnapshotError) as caught:
        parse_snapshot(json.dumps(document))
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "not JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "snapshot: input should be an object"),
        ("null", "snapshot: input should be an object, is None"),
    ],
)
def test_what_is_no_snapshot_at_all_is_refused(text: str, line: str) -> None:
    with pytest.raises(SnapshotError, match=f"^{line}$".replace("[", r"\[")):
        parse_snapshot(text)
