"""The last GPUs of a node, for jobs whose nodes are chosen when they are reserved and for jobs whose nodes are not."""

import pytest

from support.planner.planning import job, node, places, planned, reasons


@pytest.mark.parametrize("mechanism", ["proportional", "tune", "opt"])
def test_a_job_that_is_bound_to_a_node_has_just_the_gpus_that_others_leave(mechanism: str) -> None:
    jobs = [job("anywhere", 4, arrival_s=0.0), job("bound", 4, arrival_s=1.0, nodes=("n",))]
    assert places(planned([node("n")], jobs, mechanism=mechanism)) == {"anywhere": {"n": 4}, "bound": {"n": 4}}


@pytest.mark.parametrize("mechanism", ["proportional", "tune", "opt"])
def test_and_waits_if_one_is_missing(mechanism: str) -> None:
    jobs = [job("anywhere", 5, arrival_s=0.0), job("bound", 4, arrival_s=1.0, nodes=("n",))]
    made = planned([node("n")], jobs, mechanism=mechanism)
    assert places(made) == {"anywhere": {"n": 5}}
    assert set(reasons(made)) == {"bound"}
