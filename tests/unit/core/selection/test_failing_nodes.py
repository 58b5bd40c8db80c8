"""Nodes that keep failing jobs: which are blamed, for how long, and how they are tried again."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.selection.failing_nodes import (
    FailingNode,
    FailingNodeOptions,
    FailingState,
    NodeFailure,
    NodeRun,
    failing_nodes,
)

NOW = 100_000.0
OPTIONS = FailingNodeOptions(jobs=3, within_s=6000.0, retry_s=1000.0, probe_s=600.0, max_percent=50)
TYPES = {"n1": "V100", "n2": "V100", "n3": "V100", "n4": "V100"}


def failed(job: str, node: str = "n1", at: float = NOW - 100, program: str = "") -> NodeFailure:
    return NodeFailure(job=job, program=program or job, node=node, at=at)


def run(job: str, since: float | None, node: str = "n1") -> NodeRun:
    return NodeRun(job=job, node=node, since=since)


THREE = [failed("a", at=NOW - 300), failed("b", at=NOW - 200), failed("c", at=NOW - 100)]


def found(
    failures: list[NodeFailure], *runs: NodeRun, now: float = NOW, options: FailingNodeOptions = OPTIONS
) -> dict[str, FailingNode]:
    return failing_nodes(failures, runs, TYPES, options, now)


def states(failures: list[NodeFailure], *runs: NodeRun, now: float = NOW) -> dict[str, str]:
    return {name: one.state.value for name, one in found(failures, *runs, now=now).items()}


def test_a_node_on_which_several_jobs_failed_is_avoided_until_some_time_after_the_last() -> None:
    (one,) = found(THREE).values()
    assert one == FailingNode(
        node="n1",
        state=FailingState.AVOIDED,
        jobs=("a", "b", "c"),
        last_failure_at=NOW - 100,
        retry_at=NOW + 900,
    )
    assert not one.takes_jobs
    assert found(THREE[:2]) == {}


def test_one_job_that_fails_again_and_again_counts_once() -> None:
    assert found([failed("a", at=NOW - 100 - 10 * n) for n in range(8)]) == {}


def test_a_program_that_fails_on_several_nodes_counts_for_none() -> None:
    """Also one that several jobs run: the members of a sweep share their mistakes."""
    assert found([*THREE, failed("a", "n2")]) == {}
    sweep = [failed(name, program="sweep") for name in "abc"]
    assert states(sweep) == {"n1": "Avoided"}
    assert found([*sweep, failed("d", "n2", program="sweep")]) == {}


def test_failures_count_for_a_while() -> None:
    assert states(THREE, now=NOW - 300 + 5999)["n1"] == "Retrying"
    assert found(THREE, now=NOW - 300 + 6000) == {}


def test_then_one_job_tries_the_node_alone_and_if_it_lasts_the_node_is_trusted() -> None:
    again = NOW + 900
    assert states(THREE, now=again - 1) == {"n1": "Avoided"}
    (one,) = found(THREE, now=again).values()
    assert (one.state, one.takes_jobs) == (FailingState.RETRYING, True)
    for since in (None, again):
        (one,) = found(THREE, run("t", since), now=again + 599).values()
        assert (one.state, one.probe, one.takes_jobs) == (FailingState.PROBING, "t", False)
    assert found(THREE, run("t", again), now=again + 600) == {}


def test_a_run_from_before_the_last_failure_proves_nothing() -> None:
    """Of eight GPUs one may be broken: the jobs on the others run on."""
    assert states(THREE, run("old", NOW - 5000)) == {"n1": "Avoided"}
    assert states(THREE, run("old", NOW - 5000), now=NOW + 900) == {"n1": "Retrying"}
    assert states(THREE, run("other", NOW + 900, node="n2"), now=NOW + 2000) == {"n1": "Retrying"}


def test_a_trial_that_fails_begins_the_wait_anew() -> None:
    assert states([*THREE, failed("t", at=NOW + 950)], now=NOW + 960) == {"n1": "Avoided"}


def test_where_many_nodes_fail_only_the_worst_are_avoided() -> None:
    many = [failed(f"{node}-{n}", node) for node in ("n1", "n2", "n3") for n in range(3 + (node == "n3"))]
    assert states(many) == {"n1": "Avoided", "n2": "Reported", "n3": "Avoided"}
    assert found(many)["n2"].takes_jobs


@pytest.mark.parametrize(
    ("nodes", "percent", "avoided"), [(1, 100, 0), (2, 0, 1), (2, 100, 1), (10, 10, 1), (30, 10, 3), (4, 100, 3)]
)
def test_never_all_nodes_of_a_type_are_avoided(nodes: int, percent: int, avoided: int) -> None:
    names = [f"n{n:02}" for n in range(nodes)]
    failures = [failed(f"{name}-{n}", name) for name in names for n in range(3)]
    options = replace(OPTIONS, max_percent=percent)
    held = failing_nodes(failures, (), dict.fromkeys(names, "V100"), options, NOW)
    assert [one.node for one in held.values() if not one.takes_jobs] == names[:avoided]
    assert len(held) == nodes


def test_it_can_be_turned_off_and_nodes_that_are_gone_are_forgotten() -> None:
    assert found(THREE, options=replace(OPTIONS, jobs=0)) == {}
    assert found([failed(name, "gone") for name in "abc"]) == {}


def test_failures_of_a_clock_that_was_ahead_count_as_of_now() -> None:
    (one,) = found([failed(name, at=NOW + 1000) for name in "abc"]).values()
    assert one.retry_at == NOW + 1000
    assert found([failed(name, at=NOW + 1001) for name in "abc"]) == {}, "nobody would wait for it"


@given(
    st.lists(
        st.builds(
            NodeFailure,
            job=st.sampled_from("abcdef"),
            program=st.sampled_from("pq"),
            node=st.sampled_from(["n1", "n2", "n3", "n4", "n5"]),
            at=st.floats(NOW - 9000, NOW),
        ),
        max_size=40,
    ),
    st.floats(0, 20_000),
)
def test_properties(failures: list[NodeFailure], later: float) -> None:
    """The order of failures is nothing, no node is blamed for a program that fails elsewhere, and all is forgotten."""
    assert found(failures) == found(failures[::-1])
    recent = [one for one in failures if one.node in TYPES and one.at > NOW - OPTIONS.within_s]
    elsewhere = {(one.program, one.node) for one in recent}
    for name, one in found(failures).items():
        blamed = {other.program for other in recent if other.node == name and other.job in one.jobs}
        assert any(not any((program, node) in elsewhere for node in TYPES if node != name) for program in blamed)
        assert len(one.jobs) >= OPTIONS.jobs
    held = found(failures, now=NOW + later)
    assert sum(not one.takes_jobs for one in held.values()) <= 2
    assert found(failures, now=NOW + OPTIONS.within_s) == {}
