"""Runs that end, are revoked or give their nodes back."""

import math
from dataclasses import replace

import pytest

from support.extender.cluster import (
    allocation,
    cluster,
    foreign,
    job,
    key,
    node_object,
    pod_object,
    share,
    worker,
)
from support.extender.deciding import (
    AT_PLAN,
    BOUNDARY,
    MID_ROUND,
    NODES,
    ROUNDS,
    THIS,
    allocated,
    decided,
    only,
    place,
    plan,
)
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model.config import Mode
from synergy_extender.cluster.jobs.unstarted import NOT_STARTED_SECONDS, OVERLOOKED_SECONDS
from synergy_extender.cluster.revocation import Revocation
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, PodView, read_pod
from synergy_extender.decisions.changes import ChangeKind
from synergy_extender.decisions.protocol import NOT_ADMITTED_SECONDS
from synergy_extender.rounds import Moment


def test_an_ended_run_is_released_and_planned_again_in_the_same_pass() -> None:
    status = {"allocation": allocation(share("n1"), state="Revoked"), "service": {"run": 1, "endedRun": 1}}
    done = {"allocation": allocation(share("n1")), "service": {"run": 1, "endedRun": 1}, "phase": "Succeeded"}
    state = cluster(NODES, [job("again", status=status), job("done", status=done)])
    changes = {
        c.job.key.name: c for c in decided(state, MID_ROUND, plan(place("again", ("n1", 1, 1000))), "fill").changes
    }
    assert (changes["again"].kind, allocated(changes["again"]).run) == (ChangeKind.ENTER, 2)
    released = allocated(changes["done"])
    assert (released.state, released.workers, released.lease_until, released.run) == ("Released", [], None, 1)


@pytest.mark.parametrize("mode", ["round", "fill", None])
def test_a_suspended_job_leaves_at_once_in_every_kind_of_pass(mode: Mode | None) -> None:
    held = {"allocation": allocation(share("n1")), "phase": "Running"}
    state = cluster(NODES, [job("j", status=held, spec={"suspend": True})])
    made = None if mode is None else plan(place("j", ("n1", 1, 1000)))
    change = only(decided(state, MID_ROUND, made, mode or "fill"))
    assert (allocated(change).state, allocated(change).reason) == ("Revoked", Revocation.SUSPENDED)
    assert allocated(change).lease_until == format_time(MID_ROUND.now)


def test_a_run_that_is_not_admitted_gives_back_a_place_on_a_lost_node() -> None:
    held = {"allocation": allocation(share("n1"), admitted=False)}
    state = cluster([node_object("n1", ready=False)], [job("j", status=held)])
    assert allocated(only(decided(state, MID_ROUND))).reason == Revocation.NODE_UNUSABLE
    running = cluster([node_object("n1", ready=False)], [job("j", status={"allocation": allocation(share("n1"))})])
    assert decided(running, MID_ROUND).changes == []


def test_a_run_whose_room_never_comes_free_gives_its_place_back() -> None:
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    state = cluster(NODES, [job("j", gpus=8, status=held)], [foreign("x", node="n1", gpus=1)])
    patience = NOT_ADMITTED_SECONDS
    assert decided(state, MID_ROUND, granted_since={key("j"): MID_ROUND.now - patience}).changes == []
    tired = decided(state, MID_ROUND, granted_since={key("j"): MID_ROUND.now - patience - 1})
    assert allocated(only(tired)).reason == Revocation.ROOM_NOT_FREED


def test_a_run_whose_room_has_come_free_at_last_starts() -> None:
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    long_ago = {key("j"): MID_ROUND.now - 10 * NOT_ADMITTED_SECONDS}
    change = only(decided(cluster(NODES, [job("j", gpus=8, status=held)]), MID_ROUND, granted_since=long_ago))
    assert (change.kind, allocated(change).admitted) == (ChangeKind.ADMIT, True)


def test_a_grace_period_of_years_is_not_waited_for() -> None:
    """A granted job would stand still, with GPUs beside those that do not come free, until somebody looks."""
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    going = read_pod(pod_object("x", node="n1", gpus=1, deleting_at=MID_ROUND.now + 1e8))
    state = cluster(NODES, [job("j", gpus=8, status=held)], [going])
    long_ago = {key("j"): MID_ROUND.now - NOT_ADMITTED_SECONDS - 1}
    assert allocated(only(decided(state, MID_ROUND, granted_since=long_ago))).reason == Revocation.ROOM_NOT_FREED


def test_a_deleted_job_that_a_finalizer_keeps_loses_its_place() -> None:
    """Its lease was renewed for ever, and each round gave its GPUs to others in vain."""
    old = job("old", gpus=8, status={"allocation": allocation(share("n1", gpus=8))})
    state = cluster(NODES[:1], [replace(old, deleting=True)], [worker("old", node="n1", gpus=8)])
    for moment in (MID_ROUND, AT_PLAN):
        change = only(decided(state, moment))
        assert (change.kind, allocated(change).state, allocated(change).reason) == (
            ChangeKind.LEAVE,
            "Revoked",
            Revocation.DELETED,
        )
        assert allocated(change).lease_until == format_time(moment.now)


def test_a_long_grace_period_of_those_who_leave_is_waited_for() -> None:
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    patience = NOT_ADMITTED_SECONDS
    going = read_pod(pod_object("x", node="n1", gpus=1, deleting_at=MID_ROUND.now + 600))
    state = cluster(NODES, [job("j", gpus=8, status=held)], [going])
    long_ago = {key("j"): MID_ROUND.now - patience - 1}
    assert decided(state, MID_ROUND, granted_since=long_ago).changes == []
    overdue = Moment(MID_ROUND.now + 600 + patience + 1, ROUNDS, THIS)
    reasons = [allocated(change).reason for change in decided(state, overdue, granted_since=long_ago).changes]
    assert reasons == [Revocation.ROOM_NOT_FREED]


@pytest.mark.parametrize(
    "occupant",
    [
        [job("old", status={"allocation": allocation(share("n1"), until=MID_ROUND.now + 600)})],
        [job("old", status={"allocation": allocation(state="Released", until=None)})],
        [job("old", status={"allocation": allocation(share("n1"), state="Revoked", until=None)})],
        [],
    ],
    ids=["stays", "has ended", "leaves without a time", "is gone"],
)
def test_pods_that_no_lease_ends_are_not_waited_for(occupant: list[JobView]) -> None:
    coming = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    state = cluster(NODES, [*occupant, job("new", gpus=8, status=coming)], [worker("old", node="n1", gpus=1)])
    long_ago = {key("new"): MID_ROUND.now - NOT_ADMITTED_SECONDS - 1}
    changes = {change.job.key.name: change for change in decided(state, MID_ROUND, granted_since=long_ago).changes}
    assert allocated(changes["new"]).reason == Revocation.ROOM_NOT_FREED


@pytest.mark.parametrize(
    ("there", "waited", "gives_back"),
    [
        (worker("old", node="n1", gpus=1), NOT_ADMITTED_SECONDS + 1, False),
        (worker("old", node="n1", gpus=1), OVERLOOKED_SECONDS + 1, True),
        (
            worker("old", node="n1", gpus=1, deleting_at=MID_ROUND.now - NOT_ADMITTED_SECONDS - 1),
            NOT_ADMITTED_SECONDS + 1,
            True,
        ),
        (foreign("x", node="n1", gpus=1), NOT_ADMITTED_SECONDS + 1, True),
    ],
    ids=["is to be ended", "is overlooked", "does not end", "is foreign"],
)
def test_while_others_get_their_room_the_operator_may_be_slow_to_end_runs(
    there: PodView, waited: float, gives_back: bool
) -> None:
    """After thousands of preemptions at once, newcomers would give their places back again and again."""
    leaving = {"allocation": allocation(share("n1"), state="Revoked", until=None)}
    coming = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    jobs = [job("old", status=leaving), job("new", gpus=8, status=coming)]
    long_ago = {key("new"): MID_ROUND.now - waited}
    for freed_at, gives in ((MID_ROUND.now - 1, gives_back), (-math.inf, True)):
        made = decided(cluster(NODES, jobs, [there]), MID_ROUND, granted_since=long_ago, freed_at=freed_at)
        told = [allocated(change).reason for change in made.changes if change.job.key == key("new")]
        assert told == ([Revocation.ROOM_NOT_FREED] if gives else [])


@pytest.mark.parametrize("mode", ["round", "fill"])
@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_run_that_follows_an_ended_one_begins_to_wait_anew(node: str, mode: Mode) -> None:
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False), "service": {"run": 1, "endedRun": 1}}
    state = cluster(NODES, [job("j", gpus=8, status=held)], [foreign("x", node="n1", gpus=1)])
    long_ago = {key("j"): MID_ROUND.now - 10 * NOT_ADMITTED_SECONDS}
    made = decided(state, MID_ROUND, plan(place("j", (node, 8, 1000))), mode, granted_since=long_ago)
    change = only(made)
    assert (change.kind, allocated(change).state, allocated(change).run) == (ChangeKind.ENTER, "Granted", 2)


@pytest.mark.parametrize("mode", ["round", "fill"])
def test_a_plan_that_keeps_a_run_does_not_keep_it_waiting_for_ever(mode: Mode) -> None:
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    state = cluster(NODES, [job("j", gpus=8, status=held)], [foreign("x", node="n1", gpus=1)])
    long_ago = {key("j"): MID_ROUND.now - 10 * NOT_ADMITTED_SECONDS}
    change = only(decided(state, MID_ROUND, plan(place("j", ("n1", 8, 1000))), mode, granted_since=long_ago))
    assert (change.kind, allocated(change).reason) == (ChangeKind.LEAVE, Revocation.ROOM_NOT_FREED)


@pytest.mark.parametrize(("save_seconds", "waits"), [(None, 30.0), (10.0, 30.0), (150.0, 270.0), (9000.0, 570.0)])
def test_a_checkpoint_of_those_who_leave_is_waited_for(save_seconds: float | None, waits: float) -> None:
    """Else a newcomer would give its place back and be planned elsewhere again and again."""
    until = MID_ROUND.now - 1
    leaving = {"allocation": allocation(share("n1"), state="Revoked", until=until)}
    leaving |= {"progress": {"run": 1, "saveSeconds": save_seconds}}
    coming = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    jobs = [job("old", status=leaving), job("new", gpus=8, status=coming)]
    state = cluster(NODES, jobs, [worker("old", node="n1", gpus=1)])
    long_ago = {key("new"): MID_ROUND.now - 10_000}
    last = until + waits + NOT_ADMITTED_SECONDS
    for now, want in ((last - 1, []), (last + 1, [Revocation.ROOM_NOT_FREED])):
        made = decided(state, Moment(now, ROUNDS, ROUNDS.at(now)), granted_since=long_ago)
        told = [allocated(change).reason for change in made.changes if change.job.key == key("new")]
        assert told == want


def test_an_admitted_run_without_a_bound_pod_is_revoked_and_says_why() -> None:
    held = {"allocation": allocation(share("n1"), admitted=True, until=BOUNDARY + 20)}
    state = cluster(NODES, [job("j", status=held)])
    since = {key("j"): MID_ROUND.now - NOT_STARTED_SECONDS}
    assert decided(state, MID_ROUND, unstarted_since=since).changes == []
    assert decided(state, MID_ROUND).changes == []
    late = {key("j"): since[key("j")] - 1}
    revoked = allocated(only(decided(state, MID_ROUND, unstarted_since=late)))
    assert (revoked.state, revoked.lease_until) == ("Revoked", format_time(MID_ROUND.now))
    assert revoked.reason.startswith("PodsNotStarted: run 1 was given back: none of its pods was bound")


def test_the_gpus_of_a_run_that_was_revoked_for_want_of_pods_go_to_others() -> None:
    held = {"allocation": allocation(share("n1", gpus=8), state="Revoked", until=MID_ROUND.now - 1)}
    state = cluster(NODES, [job("stuck", gpus=8, status=held), job("other", gpus=8)])
    change = only(decided(state, MID_ROUND, plan(place("other", ("n1", 8, 1000))), "fill"))
    assert (change.job.key, allocated(change).admitted) == (key("other"), True)


def test_a_revoked_lease_far_ahead_is_brought_back_and_an_ordinary_one_is_left() -> None:
    def revoked(until: float) -> ClusterState:
        return cluster(NODES, [job("j", status={"allocation": allocation(share("n1"), state="Revoked", until=until)})])

    change = only(decided(revoked(MID_ROUND.now + 86_400), MID_ROUND))
    assert change.kind is ChangeKind.LEAVE
    until = allocated(change).lease_until
    assert until is not None
    assert parse_time(until) <= MID_ROUND.now + MID_ROUND.rounds.lead_s
    assert decided(revoked(MID_ROUND.now + MID_ROUND.rounds.lead_s), MID_ROUND).changes == []


def test_a_revoked_run_without_a_time_to_leave_by_is_left_as_it_is() -> None:
    held = {"allocation": allocation(share("n1"), state="Revoked", until=None)}
    assert decided(cluster(NODES, [job("j", status=held)]), MID_ROUND).changes == []
