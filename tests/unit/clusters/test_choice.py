"""Which worker cluster a job is offered to."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from synergy_clusters.choice import Prospect, least_wanted, soonest, worth_moving
from synergy_core.model.snapshot import Job, Node, Snapshot

TIMES = st.one_of(st.sampled_from([0.0, 5.0, inf]), st.floats(0, 1e9))
PROSPECTS = st.lists(st.builds(Prospect, TIMES, TIMES, st.sampled_from("abcdef")), unique_by=lambda one: one.cluster)


@given(PROSPECTS, st.randoms())
def test_the_soonest_start_wins_in_whatever_order_clusters_are_asked(prospects: list[Prospect], random: object) -> None:
    best = soonest(prospects)
    shuffled = list(prospects)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert soonest(shuffled) == best
    starts = [one.start_s for one in prospects if one.start_s < inf]
    assert (best is None) == (not starts)
    if best is not None:
        assert best.start_s == min(starts)
        equal = [one for one in prospects if (one.start_s, one.finish_s) == (best.start_s, best.finish_s)]
        assert best.cluster == min(one.cluster for one in equal)


def test_of_equal_starts_the_sooner_end_wins() -> None:
    assert soonest([Prospect(0, 90, "a"), Prospect(0, 60, "b")]) == Prospect(0, 60, "b")


@given(PROSPECTS, PROSPECTS)
def test_a_move_always_gains(one: list[Prospect], other: list[Prospect]) -> None:
    present, best = soonest(one), soonest(other)
    if worth_moving(present, best, 0.0):
        assert best is not None
        assert present is None or best.start_s < present.start_s


def test_small_gains_move_nothing() -> None:
    here = Prospect(1000, 2000, "a")
    assert not worth_moving(here, Prospect(800, 900, "b"), 0.0)
    assert worth_moving(here, Prospect(700, 900, "b"), 0.0)
    assert not worth_moving(Prospect(50, 60, "a"), Prospect(0, 10, "b"), 0.0)
    assert not worth_moving(here, None, 0.0)
    assert worth_moving(None, here, 0.0)
    assert worth_moving(Prospect(inf, inf, "a"), here, 0.0)


def cluster(gpu_type: str, gpus: int, *, wanted: int = 0) -> Snapshot:
    node = Node(name="n", gpu_type=gpu_type, gpus=gpus, cpu_millis=4000, memory_bytes=16 << 30)
    return Snapshot(nodes=(node,), jobs=tuple(Job(name=str(one), gpus=1) for one in range(wanted)), now=0.0, config={})


def test_without_a_forecast_the_cluster_of_which_least_is_wanted_gets_the_job() -> None:
    job = Job(name="j", gpus=2, gpu_types=("V100",))
    states = {"a": cluster("V100", 4, wanted=4), "b": cluster("V100", 8, wanted=4), "c": cluster("T4", 8)}
    clusters = {name: (job, state) for name, state in {**states, "d": cluster("V100", 1)}.items()}
    assert least_wanted(clusters, {}) == "b"
    assert least_wanted(clusters, {"b": 4}) == "a", "of two alike the first"
    assert least_wanted({name: clusters[name] for name in "cd"}, {}) == "", "neither has two V100s"
