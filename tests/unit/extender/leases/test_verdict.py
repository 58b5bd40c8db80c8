"""What a worker hears when it reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import GI, NOW, allocation, job, share, worker
from synergy_extender.leases.verdict import LEAST_SECONDS, MOST_SECONDS, Verdict, next_report_s, verdict
from synergy_extender.rounds import Rounds

ROUNDS = Rounds(20)
POD = worker("j", node="n1", gpus=2, cpu="1", memory="1Gi")


def heard(held: dict[str, object] | None, now: float = NOW + 5, **service: object) -> Verdict:
    status = {"allocation": held} if held is not None else {}
    return verdict(job("j", gpus=4, status={**status, "service": service}).status, POD, now, ROUNDS)


def test_a_granted_run_trains_on_and_hears_its_part_of_the_nodes_share() -> None:
    held = allocation(share("n1", gpus=4, cpu_millis=6000, memory_bytes=8 * GI))
    assert heard(held) == Verdict("continue", None, 15.0, 5.0, 3000, 4 * GI)


def test_a_revoked_run_hears_how_long_it_may_go_on() -> None:
    held = allocation(share("n1", gpus=2, cpu_millis=1500), state="Revoked", until=NOW + 7.4)
    assert heard(held) == Verdict("yield", 2.4, 2.4, 2.4, 1500, GI)
    assert heard(held, NOW + 30).yield_in_s == 0.0


@pytest.mark.parametrize(("save_seconds", "leaves_in"), [(None, 12.0), (4.5, 7.5), (60.0, 0.0)])
def test_a_revoked_run_leaves_earlier_by_what_its_checkpoint_takes(
    save_seconds: float | None, leaves_in: float
) -> None:
    """Its GPUs are needed at the boundary; there the checkpoint is to be written, not begun."""
    held = allocation(share("n1", gpus=2), state="Revoked", until=NOW + 12)
    status = {"allocation": held, "progress": {"run": 1, "saveSeconds": save_seconds}}
    answer = verdict(job("j", gpus=4, status=status).status, POD, NOW, ROUNDS)
    assert (answer.verdict, answer.yield_in_s, answer.lease_remaining_s) == ("yield", leaves_in, 12.0)


def test_how_long_a_checkpoint_takes_says_nothing_while_the_run_may_go_on() -> None:
    status = {"allocation": allocation(share("n1", gpus=2)), "progress": {"run": 1, "saveSeconds": 60.0}}
    assert verdict(job("j", gpus=4, status=status).status, POD, NOW + 5, ROUNDS).verdict == "continue"


@pytest.mark.parametrize("held", [None, allocation(share("n1"), run=2), allocation(run=1, state="Released")])
def test_a_pod_of_no_current_run_leaves_at_once(held: dict[str, object] | None) -> None:
    assert heard(held) == Verdict("yield", 0.0, 0.0, 0.0, 1000, GI)


def test_a_pod_whose_run_has_ended_leaves_at_once() -> None:
    assert heard(allocation(share("n1", gpus=2)), endedRun=1).verdict == "yield"


def test_a_granted_run_holds_its_place_from_round_to_round_without_a_write() -> None:
    long_ago = allocation(share("n1", gpus=2), until=NOW - 300, round=1)
    assert (heard(long_ago).verdict, heard(long_ago).lease_remaining_s) == ("continue", 15.0)
    status = job("j", gpus=4, status={"allocation": long_ago}).status
    later = verdict(status, POD, NOW + 19, ROUNDS, planned=ROUNDS.at(NOW) + 1)
    assert (later.verdict, later.lease_remaining_s) == ("continue", 21.0), (
        "the next round is planned, and left it there"
    )
    far = verdict(status, POD, NOW + 19, ROUNDS, planned=ROUNDS.at(NOW) + 1000)
    assert far.lease_remaining_s == 1.0, "whoever planned that far ahead had a clock that was ahead"


def test_a_run_whose_next_round_is_known_to_be_planned_reports_at_its_usual_pace() -> None:
    status = job("j", gpus=4, status={"allocation": allocation(share("n1", gpus=2))}).status
    undecided = verdict(status, POD, NOW + 17.5, ROUNDS).next_report_s
    assert undecided < 2.5
    assert verdict(status, POD, NOW + 17.5, ROUNDS, planned=ROUNDS.at(NOW) + 1).next_report_s == 5.0


def test_a_grant_in_rounds_of_another_length_says_nothing_of_the_next_round() -> None:
    """After `roundSeconds` was raised, the numbers of earlier rounds are far ahead. Nothing writes the grant again."""
    shorter = allocation(share("n1", gpus=2), round=Rounds(5).at(NOW))
    status = job("j", gpus=4, status={"allocation": shorter}).status
    answer = verdict(status, POD, NOW + 17.5, ROUNDS)
    assert (answer.lease_remaining_s, answer.next_report_s < 2.5) == (2.5, True), "it reports before the boundary"


def test_a_pod_elsewhere_hears_what_it_asked_for() -> None:
    assert heard(allocation(share("n9", gpus=2))).cpu_millis == 1000


@given(
    st.integers(5, 3600),
    st.floats(0, 0.999),
    st.floats(0, 1),
)
def test_while_the_round_is_undecided_a_report_falls_between_plan_and_boundary(
    seconds: int, phase: float, spread: float
) -> None:
    rounds = Rounds(seconds)
    now = start = rounds.start(7) + phase * seconds
    boundary = rounds.end(7)
    reports = []
    while now < boundary:
        step = next_report_s(now, rounds, decided=False, spread=spread)
        assert LEAST_SECONDS - 1e-3 <= step <= MOST_SECONDS + LEAST_SECONDS
        now += step
        reports.append(now)
    if start < boundary - rounds.lead_s:
        assert any(rounds.plan_time(8) < at < boundary for at in reports)


def test_once_the_round_is_decided_reports_come_at_their_usual_pace() -> None:
    assert next_report_s(NOW + 19, ROUNDS, decided=True, spread=0.0) == 5.0
    assert next_report_s(NOW + 290, Rounds(300), decided=True, spread=0.0) == 10.0


def test_a_revoked_lease_that_a_clock_ahead_has_written_ends_soon() -> None:
    told = heard(allocation(share("n1"), state="Revoked", until=NOW + 86_400))
    assert told.verdict == "yield"
    assert told.yield_in_s is not None
    assert told.yield_in_s <= ROUNDS.seconds + ROUNDS.lead_s
