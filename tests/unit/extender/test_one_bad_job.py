"""One bad job never delays another: the plan of the others is the same as if it were not there."""

from typing import Any

import pytest

from support.cluster import NOW, cluster, job, node_object
from synergy_api.timestamps import format_time
from synergy_core import model as core
from synergy_core.plan import plan
from synergy_extender.cluster.views import JobView
from synergy_extender.planning.snapshot import build_snapshot

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


def planned(jobs: list[JobView], mode: core.Mode, policy: str) -> tuple[core.Allocation, ...]:
    """What the planner gives to whom."""
    built = build_snapshot(cluster(NODES, jobs), mode=mode, now=NOW, round_s=20)
    return plan(built.snapshot, core.PlanConfig(policy=policy, mechanism="tune", mode=mode)).allocations


@pytest.mark.parametrize("policy", ["fifo", "las", "srtf"])
@pytest.mark.parametrize("mode", ["round", "fill"])
@pytest.mark.parametrize("case", BAD)
def test_the_others_get_what_they_would_get_without_it(case: str, mode: core.Mode, policy: str) -> None:
    without = planned(GOOD, mode, policy)
    assert [place.job for place in without] == [f"team/good-{index}" for index in range(4)], "four of five fit"
    assert planned([BAD[case], *GOOD], mode, policy) == without
