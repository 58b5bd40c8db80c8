"""Since when an admitted run has been without a bound pod."""

import math
from collections.abc import Iterable

import pytest

from support.extender.cluster import NOW, allocation, cluster, job, key, share, worker
from synergy_extender.cluster.jobs.unstarted import NOT_STARTED_SECONDS, OVERLOOKED_SECONDS, Unstarted
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.views import PodView


def note(unstarted: Unstarted, pods: Iterable[PodView] = (), now: float = NOW, **held: object) -> dict[object, float]:
    """What is known after a look at one job with these pods."""
    state = cluster([], [job("j", status={"allocation": allocation(share("n1"), **{"admitted": True, **held})})], pods)
    unstarted.note(state.jobs.values(), state.pods, AssumedBindings(), now)
    return dict(unstarted.since)


def test_the_time_runs_while_no_pod_is_bound_and_ends_with_the_first() -> None:
    unstarted = Unstarted()
    assert note(unstarted) == {key("j"): NOW}
    assert note(unstarted, [worker("j")], NOW + 10) == {key("j"): NOW}
    assert note(unstarted, [worker("j", node="n1")], NOW + 20) == {}
    assert note(unstarted, now=NOW + 30) == {key("j"): NOW + 30}


@pytest.mark.parametrize("held", [{"admitted": False}, {"state": "Revoked"}, {"state": "Released"}])
def test_only_a_run_that_may_start_is_waited_for(held: dict[str, object]) -> None:
    assert note(Unstarted(), **held) == {}


def test_a_new_run_and_a_clock_that_stepped_count_anew() -> None:
    unstarted = Unstarted()
    note(unstarted)
    assert note(unstarted, now=NOW + 100, run=2) == {key("j"): NOW + 100}
    unstarted.forget()
    assert note(unstarted, now=NOW + 200, run=2) == {key("j"): NOW + 200}


def test_the_pods_of_another_run_do_not_count() -> None:
    assert note(Unstarted(), [worker("j", node="n1", run=1)], run=2) == {key("j"): NOW}


def test_while_others_begin_a_run_waits_for_its_turn_but_not_for_ever() -> None:
    unstarted = Unstarted()
    held = {"allocation": allocation(share("n1"), admitted=True)}

    def look(now: float, *bound: str) -> dict[object, float]:
        jobs = [job(name, status=held) for name in ("a", "b", "c")]
        state = cluster([], jobs, [worker(name, node="n1") for name in bound])
        unstarted.note(state.jobs.values(), state.pods, AssumedBindings(), now)
        return dict(unstarted.since)

    assert look(NOW) == dict.fromkeys((key("a"), key("b"), key("c")), NOW)
    later = NOW + NOT_STARTED_SECONDS
    assert look(later, "a") == {key("b"): later, key("c"): later}, "the operator is not away"
    assert look(later + 200, "a") == {key("b"): later, key("c"): later}, "none has begun since"
    assert look(later + 250, "a", "b") == {key("c"): later + 250}
    last = NOW + OVERLOOKED_SECONDS + 1
    assert look(last, "a", "b") == {key("c"): NOW}, "others began, and this one was overlooked"


def test_a_job_that_got_its_room_is_remembered() -> None:
    unstarted = Unstarted()
    assert unstarted.freed_at == -math.inf
    note(unstarted, admitted=False)
    note(unstarted, now=NOW + 5)
    note(unstarted, now=NOW + 9)
    assert unstarted.freed_at == NOW + 5
    unstarted.forget()
    assert unstarted.freed_at == -math.inf


def test_a_job_that_gave_its_place_back_got_no_room() -> None:
    unstarted = Unstarted()
    note(unstarted, admitted=False)
    note(unstarted, now=NOW + 5, state="Revoked", admitted=False)
    assert unstarted.freed_at == -math.inf
