"""What snapshots keep for the next one changes nothing of them: each equals the one that is built anew."""

import math
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import GI, NOW, allocation, cluster, job, node_object, share, worker
from support.extender.happenings import EVENTS, NODES, Event, World, without_rest
from synergy_api.cluster.priority_classes import read_priority_classes
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode, PlanConfig
from synergy_extender.cluster.state import ClusterState
from synergy_extender.planner.question import Asked, Question, asked_after, question_after
from synergy_extender.snapshot.known.admitted import AdmittedNodes
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.snapshot import BuiltSnapshot, build_snapshot
from synergy_extender.snapshot.times import Times, differ_in_times_only, snapshot_at, times_of, with_times


@given(EVENTS, st.sampled_from(["round", "fill"]))
def test_a_snapshot_equals_one_that_is_built_anew_whatever_happened(events: list[Event], mode: Mode) -> None:
    world, known = World(), KnownSnapshot()
    before: Asked | None = None
    theirs: Asked | None = None
    for event in events:
        world.happens(event)
        state = world.state()
        kept = build_snapshot(state, mode=mode, now=world.now, round_s=20, known=known)
        anew = build_snapshot(without_rest(state), mode=mode, now=world.now, round_s=20)
        assert as_built(kept) == as_built(anew)
        asked = Asked(kept.base, kept.clocks)
        sent = encoded(question_after(before, asked, PlanConfig(), 1.0))
        theirs = asked_after(theirs, sent)
        assert snapshot_at(theirs.base, theirs.clocks) == anew.snapshot
        before = asked


def as_built(built: BuiltSnapshot) -> tuple[object, ...]:
    return built.snapshot, built.refused, built.entitled


def encoded(question: Question) -> Question:
    """As the planner's process reads it."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(question), type=Question)


def test_of_jobs_of_which_only_time_has_passed_nothing_is_sent() -> None:
    held = {"phase": "Running", "allocation": allocation(share("n1")), "service": {"run": 1}}
    held["service"] |= {"runningSince": format_time(NOW), "runningGPUType": "V100"}  # type: ignore[operator]
    state, known = cluster(NODES, [job("a", status=held), job("b")]), KnownSnapshot()
    first = asked_of(state, known, NOW + 1)
    later = asked_of(state, known, NOW + 9)
    sent = question_after(first, later, PlanConfig(), 1.0)
    assert (sent.jobs.jobs, sent.clocks, sent.nodes) == ((), {}, False)
    theirs = snapshot_at(later.base, later.clocks)
    assert {one.name: one.attained_gpu_s for one in theirs.jobs} == {"team/a": 9.0, "team/b": 0.0}
    changed = replace(state, jobs={**state.jobs, job("b").key: job("b", gpus=4)})
    last = asked_of(changed, known, NOW + 10)
    assert [one.name for one in question_after(later, last, PlanConfig(), 1.0).jobs.jobs] == ["team/b"]


def test_a_job_that_only_its_times_tell_from_before_is_the_same_object() -> None:
    """The planner's memory goes by that; only how the times go on is sent."""
    received = {"phase": "Queued", "service": {"receivedSeconds": {"V100": 3.0}}}
    state, known = cluster(NODES, [job("a")]), KnownSnapshot()
    first = asked_of(state, known, NOW)
    later = asked_of(replace(state, jobs={job("a").key: job("a", status=received)}), known, NOW)
    sent = question_after(first, later, PlanConfig(), 1.0)
    assert (sent.jobs.jobs, list(sent.clocks)) == ((), ["team/a"])
    assert later.base.jobs[0] is first.base.jobs[0]
    assert snapshot_at(later.base, later.clocks).jobs[0].received_s == {"V100": 3.0}


def test_who_forgot_all_sends_only_what_the_process_does_not_know() -> None:
    """As after the lead was lost and is back."""
    state = cluster(NODES, [job("a"), job("b", gpus=2)])
    first, later = asked_of(state, KnownSnapshot(), NOW), asked_of(state, KnownSnapshot(), NOW + 9)
    assert first.base.jobs != later.base.jobs
    sent = question_after(first, later, PlanConfig(), 1.0)
    assert (sent.jobs.jobs, sent.clocks) == ((), {})
    theirs = asked_after(asked_after(None, encoded(question_after(None, first, PlanConfig(), 1.0))), encoded(sent))
    assert snapshot_at(theirs.base, theirs.clocks) == snapshot_at(later.base, later.clocks)


def test_a_job_whose_clock_stops_is_sent_with_its_times() -> None:
    first = asked_of(cluster(NODES, [job("a")]), KnownSnapshot(), NOW)
    running = asked_of(cluster(NODES, [job("a")]), KnownSnapshot(), NOW + 9)
    stopped = Asked(running.base, {})
    theirs: Asked | None = None
    for before, asked in ((None, first), (first, running), (running, stopped)):
        theirs = asked_after(theirs, encoded(question_after(before, asked, PlanConfig(), 1.0)))
    assert theirs is not None
    assert (theirs.base.jobs, theirs.clocks) == (running.base.jobs, {})
    assert running.base.jobs[0].waiting_s == first.base.jobs[0].waiting_s + 9


def test_a_process_that_may_have_seen_anything_is_told_all() -> None:
    """As after an error of the planner: it may have read the question, or not."""
    state, known = cluster(NODES, [job("a")]), KnownSnapshot()
    theirs = asked_of(state, known, NOW)
    asked = Asked(theirs.base, {})
    told = asked_after(theirs, encoded(question_after(None, asked, PlanConfig(), 1.0)))
    assert (snapshot_at(told.base, told.clocks), told.clocks) == (asked.base, {})


def asked_of(state: ClusterState, known: KnownSnapshot, now: float) -> Asked:
    built = build_snapshot(state, mode="fill", now=now, round_s=20, known=known)
    return Asked(built.base, built.clocks)


def test_a_job_at_another_moment_differs_in_its_times_only() -> None:
    one = core.Job(name="j", gpus=2, received_s={"V100": 5.0}, cpu_millis_min=7, further_min={"x": 1})
    times = Times(3.0, 4.0, None, {"V100": 8.0}, {}, (1.0,))
    other = with_times(one, times)
    assert (times_of(other), differ_in_times_only(one, other), one == other) == (times, True, False)
    assert other == replace(
        one, attained_gpu_s=3.0, waiting_s=4.0, received_s={"V100": 8.0}, received_spread_s={}, preempted_s=(1.0,)
    )
    assert not differ_in_times_only(one, replace(other, gpus=3))


def test_a_class_that_changes_changes_the_priority_of_jobs_that_did_not() -> None:
    def classes(value: int) -> Any:
        return read_priority_classes([{"metadata": {"name": "high"}, "value": value}])

    known, views = KnownSnapshot(), [job("a", spec={"priorityClassName": "high"})]
    for value in (5, 5, 7):
        state = replace(cluster(NODES, views), classes=classes(value))
        built = build_snapshot(state, mode="round", now=NOW, round_s=20, known=known)
        assert as_built(built) == as_built(build_snapshot(state, mode="round", now=NOW, round_s=20))


@pytest.mark.parametrize("memory", [GI, 2 * GI])
def test_a_place_that_is_reserved_anew_is_seen(memory: int) -> None:
    known, state = KnownSnapshot(), cluster(NODES, [job("a")])
    for cpu in (1000, 2000):
        shares = (core.NodeShare(node="n1", gpus=1, cpu_millis=cpu, memory_bytes=memory),)
        place = {job("a").key: core.Allocation(job="team/a", gpu_type="V100", workers=shares, steps_per_s=math.pi)}
        more: dict[str, Any] = {"mode": "fill", "now": NOW, "round_s": 20, "reserved": place}
        assert as_built(build_snapshot(state, **more, known=known)) == as_built(build_snapshot(state, **more))


def test_nodes_that_are_gone_are_forgotten() -> None:
    """An autoscaler makes nodes with new names all the time."""
    known = KnownSnapshot()
    for index in range(5):
        state = cluster([node_object(f"n{index}"), node_object("stays")], [])
        build_snapshot(state, mode="fill", now=NOW, round_s=20, known=known)
    assert len(known.nodes) <= 3, "those of the last two snapshots"


def test_a_node_that_changes_its_label_admits_other_jobs() -> None:
    known, jobs = KnownSnapshot(), [job("a", template={"nodeSelector": {"zone": "east"}})]
    for zones in ("east", "west"), ("west", "east"), ("east", "east"):
        nodes = [node_object(f"n{index}") for index in range(2)]
        for node, zone in zip(nodes, zones, strict=True):
            node["metadata"]["labels"]["zone"] = zone
        built = build_snapshot(cluster(nodes, jobs), mode="fill", now=NOW, round_s=20, known=known)
        admitted = tuple(f"n{index}" for index, zone in enumerate(zones) if zone == "east")
        assert built.snapshot.jobs[0].nodes == (None if len(admitted) == 2 else admitted)


def test_constraints_that_no_job_has_any_more_are_forgotten() -> None:
    """Nodes may stay the same for weeks, while a user edits a job."""
    known, nodes = KnownSnapshot(), [node_object("n1"), node_object("n2")]
    others = [job(name, template={"nodeSelector": {"job": name}}) for name in "bc"]
    first = cluster(nodes, [])
    for index in range(200):
        edited = job("a", template={"nodeSelector": {"edit": str(index)}})
        state = replace(first, jobs={view.key: view for view in (edited, *others)})
        build_snapshot(state, mode="fill", now=NOW, round_s=20, known=known)
        assert len(known.jobs.admitted) <= 2 * len(state.jobs)


def test_what_a_kind_of_job_found_is_kept_while_no_job_asks() -> None:
    admitted = AdmittedNodes()
    admitted.begin()
    assert admitted.of("{}", ("V100",), lambda: ("n1",)) == ("n1",)
    for _ in range(3):
        admitted.begin()
    assert admitted.of("{}", ("V100",), lambda: pytest.fail("found anew")) == ("n1",)


def test_pods_of_a_run_at_rest_that_change_or_go_change_what_others_hold() -> None:
    held = {"phase": "Running", "allocation": allocation(share("n1"))}
    known, view = KnownSnapshot(), job("j", status=held)
    for jobs, pods in (
        ([view], [worker(node="n1", gpus=1, cpu="1")]),
        ([view], [worker(node="n1", gpus=1, cpu="3")]),
        ([job("j", status=held)], [worker(node="n1", gpus=1, cpu="3")]),
        ([view], []),
        ([view], [worker(node="n1", gpus=1, cpu="2")]),
        ([], [worker(node="n1", gpus=1, cpu="2")]),
        ([view], [worker(node="n1", gpus=1, cpu="2")]),
    ):
        state = cluster(NODES, jobs, pods)
        built = build_snapshot(state, mode="round", now=NOW, round_s=20, known=known)
        assert as_built(built) == as_built(build_snapshot(without_rest(state), mode="round", now=NOW, round_s=20))
