"""Gates fall, and growth comes into force, only for room that is really free."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import GI, allocation, cluster, foreign, job, key, node_object, share, worker
from synergy_api.amounts import NOTHING, Amounts
from synergy_extender.cluster.ledger import AssumedBindings, Ledger
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, PodView
from synergy_extender.decisions.admission import admit
from synergy_extender.decisions.changes import Draft
from synergy_extender.decisions.shared_admission import ByOrder


def admitted(state: ClusterState, assumed: AssumedBindings | None = None) -> dict[str, Draft]:
    bindings = assumed or AssumedBindings()
    drafts = {k.name: Draft.of(j) for k, j in state.jobs.items()}
    order = ByOrder(drafts.values(), state, bindings, ())
    admit(drafts.values(), Ledger(state.allocatable, state.pods, bindings), state.pods, bindings, order)
    return drafts


def waits(name: str = "j", *shares: dict[str, object], **more: Any) -> JobView:
    return job(name, status={"allocation": allocation(*shares, admitted=False, **more)})


def starts(draft: Draft) -> bool:
    return draft.granted is not None and draft.granted.admitted


def test_a_run_is_admitted_when_every_node_has_room() -> None:
    state = cluster([node_object("n1"), node_object("n2")], [waits("j", share("n1", gpus=8), share("n2", gpus=8))])
    assert starts(admitted(state)["j"])


def test_a_gang_is_admitted_whole_or_not_at_all() -> None:
    state = cluster(
        [node_object("n1"), node_object("n2")],
        [waits("j", share("n1", gpus=8), share("n2", gpus=8))],
        [foreign("x", node="n2", gpus=1)],
    )
    assert not starts(admitted(state)["j"])


def test_pods_that_were_told_to_go_still_hold_their_room() -> None:
    leaving = job("old", status={"allocation": allocation(share("n1", gpus=8), state="Revoked")})
    old = worker("old", node="n1", gpus=8)
    assert not starts(admitted(cluster([node_object("n1")], [leaving, waits("j", share("n1"))], [old]))["j"])
    assert starts(admitted(cluster([node_object("n1")], [leaving, waits("j", share("n1"))]))["j"])


def test_room_given_to_an_admitted_run_is_taken_before_its_pods_are_there() -> None:
    before = job("first", status={"allocation": allocation(share("n1", gpus=5))})
    state = cluster([node_object("n1")], [before, waits("j", share("n1", gpus=4))])
    assert not starts(admitted(state)["j"])
    bound = cluster(
        [node_object("n1")], [before, waits("j", share("n1", gpus=3))], [worker("first", node="n1", gpus=5)]
    )
    assert starts(admitted(bound)["j"])


def test_a_binding_on_its_way_is_not_counted_twice() -> None:
    pod = worker("first", gpus=5, planned="n1")
    assumed = AssumedBindings()
    assumed.add(pod, "n1")
    before = job("first", status={"allocation": allocation(share("n1", gpus=5))})
    state = cluster([node_object("n1")], [before, waits("j", share("n1", gpus=3))], [pod])
    assert starts(admitted(state, assumed)["j"])


def test_a_node_that_is_gone_admits_nobody() -> None:
    assert not starts(admitted(cluster([node_object("n1")], [waits("j", share("n9"))]))["j"])


def test_growth_waits_until_others_have_really_shrunk() -> None:
    grows = job(
        "g", status={"allocation": allocation(share("n1", cpu_millis=4000), planned=[share("n1", cpu_millis=9000)])}
    )
    shrinks = job("s", status={"allocation": allocation(share("n1", cpu_millis=3000))})
    node, own = node_object("n1", cpu=12), worker("g", node="n1", gpus=1, cpu="4")
    large, small = worker("s", node="n1", gpus=1, cpu="8"), worker("s", node="n1", gpus=1, cpu="3")
    before = admitted(cluster([node], [grows, shrinks], [own, large]))["g"].granted
    after = admitted(cluster([node], [grows, shrinks], [own, small]))["g"].granted
    assert before is not None
    assert after is not None
    assert (before.workers[0].cpu_millis, len(before.planned)) == (4000, 1)
    assert (after.workers[0].cpu_millis, after.planned) == (9000, [])


def test_growth_into_what_its_own_pods_still_hold_needs_no_room() -> None:
    shrank_then_grows = allocation(share("n1", cpu_millis=4000), planned=[share("n1", cpu_millis=10_000)])
    state = cluster(
        [node_object("n1", cpu=10)],
        [job("g", status={"allocation": shrank_then_grows})],
        [worker("g", node="n1", gpus=1, cpu="10")],
    )
    granted = admitted(state)["g"].granted
    assert granted is not None
    assert granted.workers[0].cpu_millis == 10_000


amounts = st.integers(1, 8)
runs = st.lists(st.tuples(st.sampled_from(["n1", "n2"]), amounts, st.booleans(), st.booleans()), max_size=8)


@given(runs, st.lists(st.tuples(st.sampled_from(["n1", "n2"]), amounts), max_size=3))
def test_pods_and_admitted_runs_together_never_exceed_a_node_more_than_they_did(
    planned: list[tuple[str, int, bool, bool]], others: list[tuple[str, int]]
) -> None:
    jobs: list[JobView] = []
    pods: list[PodView] = [foreign(f"x{i}", node=n, gpus=g, cpu=str(g)) for i, (n, g) in enumerate(others)]
    for i, (node, gpus, was_admitted, bound) in enumerate(planned):
        held = allocation(share(node, gpus=gpus, cpu_millis=gpus * 1000), admitted=was_admitted)
        jobs.append(job(f"j{i}", status={"allocation": held}))
        if was_admitted and bound:
            pods.append(worker(f"j{i}", node=node, gpus=gpus, cpu=str(gpus), memory="1Gi"))
    state = cluster([node_object("n1"), node_object("n2")], jobs, pods)
    drafts = admitted(state)
    for node in ("n1", "n2"):
        before = taken(state, {k.name: Draft.of(j) for k, j in state.jobs.items()}, node)
        after = taken(state, drafts, node)
        assert after == before or after.fits(Amounts(8, 24_000, 96 * GI))


def taken(state: ClusterState, drafts: dict[str, Draft], node: str) -> Amounts:
    """What pods hold and admitted runs were given on the node."""
    total = state.pods.held(node)
    for name, draft in drafts.items():
        if starts(draft) and draft.granted is not None:
            own = NOTHING
            for pod in state.pods.of_run(key(name), 1):
                own = own.plus(pod.requests)
            for given_share in draft.granted.workers:
                if given_share.node == node:
                    want = Amounts(given_share.gpus, given_share.cpu_millis, given_share.memory_bytes)
                    total = total.plus(want.minus(own).at_least(NOTHING))
    return total


def test_nothing_happens_to_those_who_hold_nothing() -> None:
    state = cluster([node_object("n1")], [job("q"), job("r", status={"allocation": allocation(state="Released")})])
    assert [d.change() for d in admitted(state).values()] == [None, None]
