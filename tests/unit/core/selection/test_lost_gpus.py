"""Jobs that keep their GPUs, on nodes that have fewer by now."""

import pytest

from support.planner.planning import holding, job, node, planned, shares


@pytest.mark.parametrize("mechanism", ["tune", "proportional", "opt", "tetris-tune", "drf-tune"])
def test_on_a_node_that_has_lost_gpus_those_who_keep_theirs_are_left_with_what_they_hold(mechanism: str) -> None:
    """Together they hold more than the node has by now: there is no promise that both have room for."""
    first = job("a", 1, preemptible=False, running=holding("a", ("n1", 1, 3, 60)))
    second = job("b", 3, preemptible=False, running=holding("b", ("n1", 3, 9, 180)), arrival_s=1.0)
    result = planned([node("n1", 2, cpus=16, gib=220)], [first, second], mechanism=mechanism)
    assert shares(result, "a") == {"n1": (1, 3, 60)}
    assert shares(result, "b") == {"n1": (3, 9, 180)}
    assert result.preempted == ()


def test_jobs_on_other_nodes_get_their_share_all_the_same() -> None:
    elsewhere = job("c", 1, preemptible=False, running=holding("c", ("n2", 1, 1, 20)), arrival_s=-1.0)
    first = job("a", 1, preemptible=False, running=holding("a", ("n1", 1, 3, 60)))
    second = job("b", 3, preemptible=False, running=holding("b", ("n1", 3, 9, 180)), arrival_s=1.0)
    result = planned([node("n1", 2, cpus=6, gib=125), node("n2")], [elsewhere, first, second])
    assert shares(result, "b") == {"n1": (3, 9, 180)}
    assert shares(result, "c") == {"n2": (1, 3, 62.5)}
