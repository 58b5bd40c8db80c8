"""Nodes that keep failing jobs, from the objects of the cluster."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from synergy_api.cluster.failing_nodes import JobRuns, avoiding, find_failing_nodes, options_of, told
from synergy_api.cluster.pools import node_capacities
from synergy_api.names import ANNOTATION_FAILURES_CLEARED
from synergy_api.reasons import Reason
from synergy_api.resources.scheduling_policy import FailingNodes
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_api.timestamps import format_time
from synergy_core.selection.failing_nodes import FailingNode, FailingNodeOptions

NOW = 1_000_000.0
OPTIONS = FailingNodes(jobs=2, within_seconds=6000, retry_seconds=1000)


def node(name: str, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {"nvidia.com/gpu.product": "V100"},
            "annotations": dict(annotations or {}),
        },
        "spec": {},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "32", "memory": "64Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def failed(name: str, *, at: float = NOW - 10, more: Mapping[str, Any] | None = None, fingerprint: str = "") -> JobRuns:
    status: dict[str, Any] = {
        "service": {"run": 1, "endedRun": 1, "nodeFailures": [{"node": "n1", "run": 1, "at": format_time(at)}]}
    }
    if fingerprint:
        status["profile"] = {"state": "Complete", "fingerprint": fingerprint}
    return JobRuns(f"team/{name}", f"uid-{name}", TrainingJobStatus.model_validate({**status, **(more or {})}))


def found(
    jobs: list[JobRuns], now: float = NOW, annotations: Mapping[str, str] | None = None
) -> dict[str, FailingNode]:
    nodes = [node("n1", annotations), node("n2")]
    return find_failing_nodes(jobs, nodes, node_capacities(nodes, []), OPTIONS, now)


BOTH = [failed("a"), failed("b")]


def test_what_jobs_record_is_counted() -> None:
    assert found(BOTH)["n1"].jobs == ("team/a", "team/b")
    assert found(BOTH[:1]) == {}


def test_an_administrator_clears_what_failed_until_then() -> None:
    assert found(BOTH, annotations={ANNOTATION_FAILURES_CLEARED: format_time(NOW)}) == {}
    assert found(BOTH, annotations={ANNOTATION_FAILURES_CLEARED: format_time(NOW - 11)}).keys() == {"n1"}
    assert found(BOTH, annotations={ANNOTATION_FAILURES_CLEARED: "just now"}).keys() == {"n1"}


def test_jobs_with_one_fingerprint_are_one_program() -> None:
    elsewhere = {"service": {"nodeFailures": [{"node": "n2", "run": 1, "at": format_time(NOW)}]}}
    same = [failed(name, fingerprint="sha") for name in "abc"]
    assert found(same).keys() == {"n1"}
    assert found([*same, failed("d", fingerprint="sha", more={**elsewhere, "profile": same[0].status.profile})]) == {}


def test_the_open_run_is_the_trial() -> None:
    held = {"run": 1, "state": "Granted", "workers": [{"node": "n1", "gpus": 1, "cpuMillis": 1, "memoryBytes": 1}]}
    trial = JobRuns("team/t", "uid-t", TrainingJobStatus.model_validate({"allocation": held}))
    after = NOW - 10 + 1000
    one = found([*BOTH, trial], now=after)["n1"]
    assert (one.state.value, one.probe) == ("Probing", "team/t")
    for over in ({"allocation": {**held, "state": "Released"}}, {"allocation": held, "service": {"endedRun": 1}}):
        ended = JobRuns("team/t", "uid-t", TrainingJobStatus.model_validate(over))
        assert found([*BOTH, ended], now=after)["n1"].state.value == "Retrying"
    since = {"run": 1, "runningSince": format_time(after), "runningGpuType": "V100"}
    runs = JobRuns("team/t", "uid-t", TrainingJobStatus.model_validate({"allocation": held, "service": since}))
    assert found([*BOTH, runs], now=after + 600) == {}


@pytest.mark.parametrize(
    ("now", "schedulable", "alone", "reason"),
    [
        (NOW, False, False, Reason.NODE_AVOIDED),
        (NOW + 1000, True, True, Reason.NODE_ON_TRIAL),
    ],
)
def test_an_avoided_node_takes_no_job_and_one_on_trial_takes_one(
    now: float, schedulable: bool, alone: bool, reason: Reason
) -> None:
    failing = found(BOTH, now=now)
    first, second = avoiding(node_capacities([node("n1"), node("n2")], []), failing)
    assert (first.schedulable, first.one_at_a_time) == (schedulable, alone)
    assert (second.schedulable, second.one_at_a_time) == (True, False)
    finding = told(failing["n1"])
    assert finding.reason is reason
    assert "2 jobs failed on node n1 (team/a, team/b)" in finding.message
    assert "kubectl synergy nodes --clear n1" in finding.message


def test_a_cordoned_node_is_on_no_trial() -> None:
    cordoned = {**node("n1"), "spec": {"unschedulable": True}}
    (one,) = avoiding(node_capacities([cordoned], []), found(BOTH, now=NOW + 1000))
    assert (one.schedulable, one.one_at_a_time) == (False, False)


def test_the_options_are_those_of_the_core() -> None:
    assert options_of(FailingNodes()) == FailingNodeOptions()
    with pytest.raises(ValidationError, match=r"withinSeconds must be at least \(jobs \+ 1\) \* retrySeconds"):
        FailingNodes(jobs=3, within_seconds=300, retry_seconds=100)
