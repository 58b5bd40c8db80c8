"""One bad job never delays another: the plan of the others is the same as if it were not there."""

from dataclasses import replace
from typing import Any, get_args

import msgspec
import pytest

from support.extender.cluster import NOW, cluster, foreign, job, node_object
from synergy_api.resources.scheduling_policy import TimeSharingPolicyName
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.plan import plan
from synergy_extender.cluster.views import JobView
from synergy_extender.planner.process import Planner
from synergy_extender.planner.question import Answer, Asked, question_after
from synergy_extender.snapshot.snapshot import build_snapshot

NODES = [node_object("n1"), node_object("n2")]
GOOD = [job(f"good-{index}", gpus=4) for index in range(5)]
FIRST: dict[str, Any] = {"creationTimestamp": format_time(NOW - 9000)}
"""The bad job was there long before the others: first in every line."""
BAD: dict[str, JobView] = {
    "not valid": job("bad", gpus=4, status={"phase": "Pending"}, **FIRST),
    "failed": job("bad", gpus=4, status={"phase": "Failed"}, **FIRST),
    "refused by a quota, waiting": job(
        "bad", gpus=4, status={"service": {"refusals": 3, "retryAt": format_time(NOW + 40)}}, **FIRST
    ),
    "an image that is not there, waiting": job(
        "bad", gpus=4, status={"service": {"failures": 1, "retryAt": format_time(NOW + 10)}}, **FIRST
    ),
    "more GPUs than any nodes have": job("bad", gpus=4096, **FIRST),
    "a type that is not there": job("bad", gpus=4, spec={"gpuTypes": ["H100"]}, **FIRST),
    "no node that its template admits": job("bad", gpus=4, template={"nodeSelector": {"nobody/has": "this"}}, **FIRST),
    "more CPU than all nodes have": job("bad", gpus=4, spec={"resources": {"min": {"cpu": "999"}}}, **FIRST),
    "a profile that asks for too much": job(
        "bad",
        gpus=4,
        status={
            "phase": "Profiling",
            "profile": {
                "state": "Waiting",
                "request": {"gpuType": "V100", "gpus": 64, "cpuMillis": 1000, "memoryBytes": 1 << 30},
            },
        },
        **FIRST,
    ),
}


def planned(jobs: list[JobView], mode: Mode, policy: str) -> tuple[core.Allocation, ...]:
    """What the planner gives to whom."""
    built = build_snapshot(cluster(NODES, jobs), mode=mode, now=NOW, round_s=20)
    return plan(built.snapshot, PlanConfig(policy=policy, mechanism="tune", mode=mode)).allocations


@pytest.mark.parametrize("policy", ["fifo", "las", "srtf"])
@pytest.mark.parametrize("mode", ["round", "fill"])
@pytest.mark.parametrize("case", BAD)
def test_the_others_get_what_they_would_get_without_it(case: str, mode: Mode, policy: str) -> None:
    without = planned(GOOD, mode, policy)
    assert [place.job for place in without] == [f"team/good-{index}" for index in range(4)], "four of five fit"
    assert planned([BAD[case], *GOOD], mode, policy) == without


LAST = 2**63 - 1


def matrix(*speeds: list[float]) -> dict[str, Any]:
    """A profile whose axes go from the least to the most."""
    given = {"gpuType": "V100", "cpuMillis": [1, LAST], "memoryBytes": [1, LAST], "stepsPerSecond": list(speeds)}
    return {"mode": "Provided", "matrices": [given]}


EXTREME: list[dict[str, Any]] = [
    {"resources": {"max": {"cpu": "9E", "memory": "7Ei"}}},
    {"resources": {"min": {"cpu": "9E"}}},
    {"resources": {"min": {"memory": "9223372036854775807"}}},
    {"weight": 2e-6, "steps": LAST, "profile": matrix([2e-6, 2e-6], [2e-6, 2e-6])},
    {"weight": 1e6, "steps": 1, "profile": matrix([1e9, 1e9], [1e9, 1e9])},
    {"weight": 1e6, "steps": 1, "profile": matrix([2e-6, 2e-6], [2e-6, 1e9])},
    {"slo": {"deadline": "0001-01-01T00:00:00Z"}, "steps": LAST, "profile": matrix([2e-6, 2e-6], [2e-6, 1e9])},
    {"slo": {"deadline": "9999-12-31T23:59:59Z"}, "steps": 1, "batchSize": LAST},
    {"sharing": {"allowed": True, "usage": [{"gpuType": "V100", "compute": 0, "bandwidth": 0, "memory": "9E"}]}},
]
"""The largest and smallest numbers that the API server lets pass."""


@pytest.mark.parametrize(
    ("policy", "mechanism"),
    [
        *((policy, "tune") for policy in get_args(TimeSharingPolicyName)),
        *(("las", m) for m in ("greedy", "opt", "drf")),
    ],
)
def test_no_number_that_a_spec_may_hold_ends_the_plan_of_all(policy: str, mechanism: str) -> None:
    """Over the way to the planner's process, which takes no more than 64 bits."""
    sidecars = [{"name": n, "image": "x", "resources": {"requests": {"cpu": "9E"}}} for n in ("train", "a", "b", "c")]
    spot = {"cpu": "9E", "memory": "7Ei", "node": "n2"}
    pods = [foreign(f"large-{index}", **spot) for index in range(3)]  # a pod with a nodeName passes no scheduler
    extreme = [*(job("bad", gpus=4, spec=spec, **FIRST) for spec in EXTREME)]
    endless = {"spec": {"steps": None, "epochs": 10**9}, "status": {"progress": {"run": 1, "epochSteps": 1 << 40}}}
    extreme.append(job("bad", gpus=4, **endless, **FIRST))
    for bad in (*extreme, job("bad", gpus=4, template={"containers": sidecars}, **FIRST)):
        state = cluster(NODES, [bad, job("good", gpus=4)], pods)
        priced = replace(state, capacities=[replace(c, price_per_hour=1.0) for c in state.capacities])
        snapshot = build_snapshot(priced, mode="round", now=NOW, round_s=20).snapshot
        question = question_after(None, Asked(snapshot, {}), PlanConfig(policy=policy, mechanism=mechanism), 60.0)
        answer = Planner().answer(msgspec.msgpack.encode(question))
        assert isinstance(answer, Answer), (bad.spec, answer)
        msgspec.msgpack.encode(answer)
