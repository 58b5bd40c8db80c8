"""The ledger counts everybody's pods and bindings on their way."""

from support.extender.cluster import GI, cluster, foreign, node_object, worker
from synergy_api.amounts import NOTHING, Amounts
from synergy_extender.cluster.ledger import ASSUMED_SECONDS, AssumedBindings, Ledger


def test_free_is_allocatable_less_pods_of_all_owners_less_bindings_on_their_way() -> None:
    state = cluster(
        [node_object("n1", gpus=8, cpu=24, memory_gib=96)],
        pods=[foreign("x", node="n1", gpus=2, cpu="1"), worker("j", node="n1", gpus=1, memory="1Gi")],
    )
    assumed = AssumedBindings()
    assumed.add(worker("k", gpus=4, cpu="2"), "n1")
    ledger = Ledger(state.allocatable, state.pods, assumed)
    assert ledger.free("n1") == Amounts(1, 21_000, 95 * GI)
    assert ledger.free("elsewhere") == NOTHING
    assert (ledger.knows("n1"), ledger.knows("elsewhere")) == (True, False)


def test_an_assumed_binding_counts_until_it_is_seen_or_its_time_is_over() -> None:
    now = [0.0]
    assumed = AssumedBindings(lambda: now[0])
    seen, unseen = worker("a", gpus=1), worker("b", gpus=2)
    assumed.add(seen, "n1")
    now[0] = 10.0
    assumed.add(unseen, "n1")
    assert (assumed.on("n1"), assumed.node_of(seen.uid)) == (Amounts(3), "n1")
    assumed.remove(seen.uid)
    assert assumed.on("n1") == Amounts(2)
    now[0] = ASSUMED_SECONDS + 9
    assert (len(assumed), assumed.copy().on("n1")) == (1, Amounts(2))
    now[0] = ASSUMED_SECONDS + 10
    assert (len(assumed), assumed.node_of(unseen.uid), assumed.pods_to("n1")) == (0, "", [])
    assert (assumed.on("n1"), assumed.copy().on("n1")) == (NOTHING, NOTHING)
