"""The order in which changes are written, and what is left to the next pass."""

from dataclasses import replace

from support.extender.cluster import (
    allocation,
    cluster,
    job,
    key,
    share,
    worker,
)
from support.extender.deciding import AT_PLAN, NODES, allocated, decided, place, plan
from synergy_api.reasons import Reason, say
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.decisions.writing_order import POSITIONS_AT_ONCE, REASONS_AT_ONCE, affordable, in_turns
from synergy_extender.snapshot.snapshot import build_snapshot


def test_a_job_that_changed_while_the_plan_was_made_is_left_to_the_next_pass() -> None:
    state = cluster(NODES, [job("j", spec={"suspend": True}), job("k")])
    before = {k: stance(j, AT_PLAN.now) for k, j in cluster(NODES, [job("j"), job("k")]).jobs.items()}
    result = PlanResult(plan(place("j", ("n1", 1, 1000)), place("k", ("n1", 1, 1000))), "round", before)
    changes = decide(state, AT_PLAN, result, AssumedBindings()).changes
    assert [c.job.key.name for c in changes] == ["k"]


def test_who_leaves_is_written_before_who_stays_and_who_enters_last() -> None:
    jobs = [
        job("a-enters"),
        job("b-stays", status={"allocation": allocation(share("n1"))}),
        job("c-leaves", status={"allocation": allocation(share("n2"))}),
        job("d-waits"),
    ]
    made = plan(place("a-enters", ("n1", 1, 1000)), place("b-stays", ("n1", 1, 500)), waiting=("c-leaves", "d-waits"))
    kinds = [c.kind for c in decided(cluster(NODES, jobs), AT_PLAN, made).changes]
    assert kinds == [ChangeKind.LEAVE, ChangeKind.STAY, ChangeKind.ENTER, ChangeKind.QUEUE]


def test_a_decision_that_was_written_leaves_nothing_more_to_decide() -> None:
    state = cluster(NODES, [job("a"), job("b", status={"allocation": allocation(share("n2", cpu_millis=500))})])
    made = plan(place("a", ("n1", 1, 3000)), place("b", ("n2", 1, 700)))
    written = {}
    for change in decided(state, AT_PLAN, made).changes:
        status = {"phase": "Queued", "allocation": allocated(change).to_wire()}
        written[change.job.key.name] = status
    after = cluster(NODES, [job(name, status=status) for name, status in written.items()])
    assert decided(after, AT_PLAN, made).changes == []


def test_of_a_job_that_cannot_be_written_nothing_is_decided_and_its_pods_count_as_used() -> None:
    held = allocation(share("n1"), until=AT_PLAN.now + 5)
    state = cluster(NODES, [job("j", status={"allocation": held})], pods=[worker("j", node="n1", gpus=1)])
    out = {key("j"): say(Reason.STATUS_REFUSED, problem="too large")}
    built = build_snapshot(state, mode="round", now=AT_PLAN.now, round_s=20, left_out=out)
    assert built.snapshot.jobs == ()
    assert next(node for node in built.snapshot.nodes if node.name == "n1").gpus_used == 1
    stances = {k: stance(j, AT_PLAN.now) for k, j in state.jobs.items()}
    result = PlanResult(plan(), "round", stances, built.refused, left_out=out)
    changes = decide(state, AT_PLAN, result, AssumedBindings()).changes
    assert [change.kind for change in changes] in ([], [ChangeKind.STAY]), "renewed at the most, never revoked"
    gone = cluster(NODES, [job("j", status={"allocation": held})])
    free = build_snapshot(gone, mode="round", now=AT_PLAN.now, round_s=20, left_out=out).snapshot.nodes
    assert all(node.gpus_used == 0 for node in free), "without pods it holds nothing"


def test_of_each_kind_namespaces_take_turns_in_writing() -> None:
    def change(namespace: str, name: str, kind: ChangeKind) -> StatusChange:
        view = replace(job(name), key=Key(namespace, name))
        return StatusChange(view, kind, None, None)

    flood = [change("flood", f"j{index}", ChangeKind.ENTER) for index in range(3)]
    team = [change("team", "a", ChangeKind.ENTER), change("team", "b", ChangeKind.QUEUE)]
    leaves = change("flood", "gone", ChangeKind.LEAVE)
    ordered = in_turns([leaves, *flood, *team])
    assert [str(one.job.key) for one in ordered] == [
        "flood/gone", "flood/j0", "team/a", "flood/j1", "flood/j2", "team/b",
    ]  # fmt: skip


def test_a_pass_writes_all_that_runs_depend_on_and_some_of_the_reasons_for_waiting() -> None:
    def changes(kind: ChangeKind, count: int) -> list[StatusChange]:
        return [StatusChange(job(f"{kind.name}-{index}".lower()), kind, None, None) for index in range(count)]

    runs = [one for kind in ChangeKind if kind < ChangeKind.QUEUE for one in changes(kind, REASONS_AT_ONCE + 5)]
    reasons, positions = changes(ChangeKind.QUEUE, REASONS_AT_ONCE + 5), changes(ChangeKind.POSITION, 25)
    written = affordable([*runs, *reasons, *positions])
    assert written == [*runs, *reasons[:REASONS_AT_ONCE], *positions[:POSITIONS_AT_ONCE]]
    assert affordable(reasons[:7]) == reasons[:7]
