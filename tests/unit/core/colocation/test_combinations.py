"""Pairs through the allocation matrix (`colocation: gavel`)."""

import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from support.planner.snapshots import GIB
from synergy_core.cache import Memory
from synergy_core.colocation.combinations import Combinations
from synergy_core.colocation.grouping import Grouping
from synergy_core.colocation.kinds.known_pairs import KnownPairs
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, FieldError, Job, Node, NodeShare, Profile, Shared, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_core.policies.allocation.budget import Budget

ROUND_S = 300.0
CONFIG = PlanConfig(policy="max-min-fairness", colocation="gavel", mechanism="proportional")


def _node(name: str = "n1", **changes: Any) -> Node:
    one = Node(
        name=name,
        gpu_type="V100",
        gpus=1,
        cpu_millis=8000,
        memory_bytes=64 * GIB,
        replicas=2,
        gpu_memory_bytes=16 * GIB,
        price_per_hour=1.0,
    )
    return replace(one, **changes)


def _job(name: str, model: str = "", *, speed: float = 10.0, **changes: Any) -> Job:
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
    usage = Usage(compute=0.3, bandwidth=0.1, memory_bytes=4 * GIB, model=model or name)
    types = ("K80", "V100")
    one = Job(
        name=name,
        gpus=1,
        tenant="t",
        sharing=True,
        steps_total=10**9,
        profiles=dict.fromkeys(types, profile),
        usage=dict.fromkeys(types, usage),
    )
    return replace(one, **changes)


def _table(**kept: tuple[float, float]) -> Mapping[str, PairTable]:
    """By the models' names, one letter each."""
    both = {(pair[0], pair[1]): one for pair, (one, _) in kept.items()}
    both |= {(pair[1], pair[0]): other for pair, (_, other) in kept.items()}
    return dict.fromkeys(("K80", "V100"), PairTable(both))


def _planned(jobs: Sequence[Job], nodes: Sequence[Node] = (_node(),), config: PlanConfig = CONFIG, **more: Any) -> Plan:
    return plan(Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), round_s=ROUND_S, **more), config)


def _units(result: Plan) -> set[tuple[str, ...]]:
    return {tuple(sorted((one.job, *one.partners))) for one in result.allocations}


def _rounds(jobs: Sequence[Job], nodes: Sequence[Node], config: PlanConfig, count: int) -> "Counter[tuple[str, ...]]":
    """How often who had a GPU, in so many rounds."""
    had: Counter[tuple[str, ...]] = Counter()
    for number in range(count):
        result = _planned(jobs, nodes, config, now=number * ROUND_S)
        had.update(_units(result))
        held = {one.job: one for one in result.allocations}
        jobs = [
            replace(
                job,
                running=held.get(job.name),
                received_s=(
                    {**job.received_s, "V100": job.received_s.get("V100", 0.0) + ROUND_S}
                    if job.name in held
                    else job.received_s
                ),
            )
            for job in jobs
        ]
    return had


@pytest.mark.parametrize(
    "policy", ["fifo", "finish-time-fairness", "gandiva", "makespan", "max-min-fairness", "max-throughput", "min-cost"]
)
def test_two_jobs_that_gain_share(policy: str) -> None:
    config = replace(CONFIG, policy=policy, predictors=_table(ab=(0.9, 0.8)))
    result = _planned([_job("a"), _job("b")], config=config)
    assert _units(result) == {("a", "b")}
    assert [one.steps_per_s for one in result.allocations] == pytest.approx([9.0, 8.0])
    assert sum(one.workers[0].cpu_millis for one in result.allocations) <= 8000


@pytest.mark.parametrize("kept", [0.5, 0.52])
def test_two_that_gain_nothing_take_turns(kept: float) -> None:
    """Nor do two that gain less than predictions may be wrong by."""
    had = _rounds([_job("a"), _job("b")], [_node()], replace(CONFIG, predictors=_table(ab=(kept, kept))), 20)
    assert had.keys() == {("a",), ("b",)}
    assert had["a",] == pytest.approx(10, abs=1)


def test_nor_do_two_share_that_need_more_cpu_than_there_is_beside_a_gpu() -> None:
    jobs = [_job(name, cpu_millis_min=5000) for name in "ab"]
    result = _planned(jobs, config=replace(CONFIG, predictors=_table(ab=(0.9, 0.9))))
    assert [one.partners for one in result.allocations] == [()]


def test_rounds_give_the_throughputs_that_x_says() -> None:
    # on one GPU: a with b or c 10/19 of the time, b or c alone in the rest; 9/19 of a GPU's speed for each
    kept = {("a", "b"): (0.9, 0.9), ("a", "c"): (0.9, 0.9), ("b", "c"): (0.4, 0.4)}
    table = _table(ab=(0.9, 0.9), ac=(0.9, 0.9), bc=(0.4, 0.4))
    had = _rounds([_job("a"), _job("b"), _job("c")], [_node()], replace(CONFIG, predictors=table), 76)
    done = dict.fromkeys("abc", 0.0)
    for unit, times in had.items():
        for name, speed in zip(unit, kept.get(unit, (1.0,)), strict=True):
            done[name] += times * speed
    assert [done[name] / 76 for name in "abc"] == pytest.approx([9 / 19] * 3, abs=0.03)


def test_nobody_starves_who_can_only_share() -> None:
    table = _table(ab=(0.9, 0.9), ac=(0.9, 0.9), ad=(0.9, 0.9))
    jobs = [_job(name) for name in "abcd"]
    had = _rounds(jobs, [_node()], replace(CONFIG, predictors=table), 60)
    got = Counter(name for unit, times in had.items() for name in unit for _ in range(times))
    assert min(got[name] for name in "bcd") >= 15


def test_of_two_gpus_only_one_can_be_shared() -> None:
    table = _table(ab=(0.9, 0.9), ac=(0.9, 0.9), bc=(0.9, 0.9), ad=(0.9, 0.9), bd=(0.9, 0.9), cd=(0.9, 0.9))
    nodes = [_node("n1"), _node("n2", replicas=1)]
    result = _planned([_job(name) for name in "abcd"], nodes, replace(CONFIG, predictors=table))
    assert sorted(len(unit) for unit in _units(result)) == [1, 2]
    shared = next(one for one in result.allocations if one.partners)
    assert shared.workers[0].node == "n1"


@pytest.mark.parametrize("least", [0.85, 0.95])
def test_a_user_says_what_a_job_keeps_at_the_least(least: float) -> None:
    config = replace(CONFIG, predictors=_table(ab=(0.9, 0.9)))
    result = _planned([_job("a", min_throughput_fraction=least), _job("b")], config=config)
    assert (("a", "b") in _units(result)) == (least < 0.9)


def test_on_a_fast_type_a_job_may_share_and_still_have_its_part_of_all_types() -> None:
    # a GPU for each, but two on the V100 at 0.7 are faster than one there and one on the K80 at a tenth
    def profiles() -> dict[str, Profile]:
        return {
            gpu_type: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
            for gpu_type, speed in (("V100", 10.0), ("K80", 1.0))
        }

    jobs = [_job(name, profiles=profiles()) for name in "ab"]
    nodes = [_node("n1"), _node("n2", gpu_type="K80")]
    result = _planned(jobs, nodes, replace(CONFIG, predictors=_table(ab=(0.7, 0.7))))
    assert _units(result) == {("a", "b")}
    assert _units(_planned(jobs, nodes, replace(CONFIG, colocation="none"))) == {("a",), ("b",)}


def test_what_was_measured_of_two_jobs_stands_in_place_of_what_is_predicted() -> None:
    seen = Shared(gpu_type="V100", partners=("b",), fraction=0.3, at_s=0.0)
    jobs = [_job("a", "m", shared=(seen,)), _job("b", "m", shared=(replace(seen, partners=("a",)),)), _job("c", "m")]
    result = _planned(jobs, config=replace(CONFIG, predictors=_table(mm=(0.9, 0.9))))
    assert next(iter(_units(result))) in (("a", "c"), ("b", "c"))
    again = _planned(jobs[:2], config=replace(CONFIG, predictors=_table(mm=(0.9, 0.9))), now=4000.0)
    assert _units(again) == {("a", "b")}


@pytest.mark.parametrize("sharing", [True, False])
def test_two_that_were_measured_to_gain_share_though_it_was_not_predicted(sharing: bool) -> None:
    """But not where one of them does not share any more."""
    seen = Shared(gpu_type="V100", partners=("b",), fraction=0.9, at_s=0.0)
    jobs = [_job("a", shared=(seen,)), _job("b", shared=(replace(seen, partners=("a",)),), sharing=sharing)]
    result = _planned(jobs, config=replace(CONFIG, predictors=_table(ab=(0.4, 0.4))))
    assert (_units(result) == {("a", "b")}) is sharing


def test_rows_are_those_of_each_pair_worked_out_by_itself() -> None:
    names = ("a", "b", "c")
    table = _table(aa=(0.6, 0.6), ab=(0.9, 0.7), ac=(0.2, 0.2), bb=(0.8, 0.8), bc=(0.95, 0.6), cc=(0.7, 0.7))
    config = replace(CONFIG, predictors=table)
    jobs = [_job(f"j{index}", names[index % 3], speed=10.0 + index % 2) for index in range(9)]
    jobs.append(_job("other", "a", tenant="u"))
    snapshot = Snapshot(nodes=(_node(), _node("n2", gpu_type="K80", gpu_memory_bytes=6 * GIB)), jobs=tuple(jobs))
    memory = Memory()
    memory.begin(snapshot.nodes, 0.05)
    grouping = Grouping(snapshot, memory.pools, config)
    alone = np.array([[10.0 + index % 2, 10.0 + index % 2] for index in range(9)] + [[10.0, 10.0]])
    for known in (KnownPairs(), memory.pairs, memory.pairs):
        pairs, rates = Combinations(grouping, known).rows(jobs, ("K80", "V100"), alone, np.array([1.0, 1.0]))
        found = {tuple(pair): rate for pair, rate in zip(pairs.tolist(), rates, strict=True)}
        for one, other in combinations(range(10), 2):
            group = grouping.together([jobs[one], jobs[other]], "V100")
            helps = group is not None and group.kept > 1.05
            assert ((one, other) in found) == helps
            if group is not None and helps:
                assert found[one, other][0].tolist() == [0.0, 0.0]  # no two fit into a K80's memory
                assert found[one, other][1] == pytest.approx(np.array(group.each) * alone[[one, other], 1])


def _rows_of(jobs: Sequence[Job]) -> set[int]:
    """The indices of the jobs that have pairs."""
    config = replace(CONFIG, predictors=_table(mm=(0.9, 0.9)))
    snapshot, memory = (
        Snapshot(nodes=(_node(gpus=8, cpu_millis=64_000, memory_bytes=512 * GIB),), jobs=tuple(jobs)),
        Memory(),
    )
    memory.begin(snapshot.nodes, 0.05)
    combinations = Combinations(Grouping(snapshot, memory.pools, config), memory.pairs)
    pairs, _ = combinations.rows(jobs, ("V100",), np.full((len(jobs), 1), 10.0), np.array([8.0]))
    return set(pairs.ravel().tolist())


def test_pairs_of_thousands_of_jobs_take_bounded_memory() -> None:
    """Of one tenant's 4,000 jobs there are 8 million pairs. All of them take 0.9 GB here, before anything is solved."""
    first = _job("first", "m")
    jobs = [replace(first, name=f"j{index}") for index in range(4000)]
    tracemalloc.start()
    considered = _rows_of(jobs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(considered) == 1500
    assert peak < 400 << 20


def test_of_too_many_jobs_those_that_share_or_run_are_considered_then_each_tenants_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    share = NodeShare(node="n1", gpus=1, cpu_millis=1000, memory_bytes=GIB)

    def runs(name: str, *partners: str) -> Job:
        held = Allocation(job=name, gpu_type="V100", workers=(share,), steps_per_s=1.0, shares_gpu_with=partners)
        return _job(name, "m", arrival_s=50.0, running=held)

    flood = [_job(f"flood-{index}", "m", arrival_s=float(index)) for index in range(6)]
    others = [_job(name, "m", tenant="u", arrival_s=90.0 + number) for number, name in enumerate("pq")]
    silent = _job("silent", "m", usage={})
    jobs = [silent, *flood, *others, runs("alone"), runs("x", "y"), runs("y", "x")]
    assert _considered(monkeypatch, jobs, 11) == {job.name for job in jobs} - {"silent"}
    assert _considered(monkeypatch, jobs, 7) == {"x", "y", "alone", "flood-0", "p", "flood-1", "q"}
    assert _considered(monkeypatch, jobs, 3) == {"x", "y", "alone"}
    assert _considered(monkeypatch, jobs, 2) == {"x", "y"}


def _considered(monkeypatch: pytest.MonkeyPatch, jobs: Sequence[Job], most: int) -> set[str]:
    monkeypatch.setattr("synergy_core.colocation.combinations._MOST_CONSIDERED", most)
    return {jobs[index].name for index in _rows_of(jobs)}


def test_without_time_the_last_pairs_serve() -> None:
    memory, config = Memory(), replace(CONFIG, policy="makespan", predictors=_table(ab=(0.9, 0.9)))
    snapshot = Snapshot(nodes=(_node(),), jobs=(_job("a"), _job("b")), round_s=ROUND_S)
    assert _units(plan(snapshot, config, memory)) == {("a", "b")}
    memory.solutions.budget = Budget(lambda: 0.0)
    late = plan(replace(snapshot, now=ROUND_S), config, memory)
    assert (_units(late), late.shares_from) == ({("a", "b")}, "last")
    fresh = Memory()
    fresh.solutions.budget = Budget(lambda: 0.0)
    first = plan(snapshot, config, fresh)
    assert (len(_units(first)), first.shares_from) == (1, "isolated")


def test_pairs_are_found_again_where_predictions_have_changed() -> None:
    memory, snapshot = Memory(), Snapshot(nodes=(_node(),), jobs=(_job("a"), _job("b")), round_s=ROUND_S)
    assert _units(plan(snapshot, replace(CONFIG, predictors=_table(ab=(0.9, 0.9))), memory)) == {("a", "b")}
    worse = plan(snapshot, replace(CONFIG, predictors=_table(ab=(0.4, 0.4))), memory)
    assert len(_units(worse)) == 1
    assert not any(one.partners for one in worse.allocations)


def test_two_that_keep_less_than_one_alone_do_not_share() -> None:
    """A client has half of the threads: alone a keeps all of its speed and b half. Together they keep 0.9 in all."""
    nodes, light, heavy = [_node(client_thread_percent=50)], _job("a"), _job("b")
    heavy = replace(heavy, usage={"V100": replace(heavy.usage["V100"], compute=1.0)})
    for first, shares in ((0.6, False), (0.8, True)):
        result = _planned([light, heavy], nodes, replace(CONFIG, predictors=_table(ab=(first, 0.3))))
        assert (_units(result) == {("a", "b")}) is shares


def test_by_cost_two_share_only_where_the_steps_of_both_are_cheapest() -> None:
    config = replace(CONFIG, policy="min-cost", predictors=_table(ab=(0.9, 0.9), ac=(0.9, 0.9), bc=(0.9, 0.9)))
    slow = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))
    fast = _job("a").profiles["V100"]
    jobs = [_job(name, profiles={"V100": fast, "K80": slow}) for name in "ab"]
    jobs.append(_job("c", profiles={"V100": slow, "K80": fast}))
    result = _planned(jobs, [_node("n1"), _node("n2", gpu_type="K80")], config)
    assert _units(result) == {("a", "b"), ("c",)}


@pytest.mark.parametrize("policy", ["las", "isolated", "allox"])
def test_policies_without_pairs_are_refused(policy: str) -> None:
    with pytest.raises(FieldError, match=f"colocation: .*{policy} has none with pairs"):
        _planned([_job("a")], config=replace(CONFIG, policy=policy))


def test_a_table_tells_of_two_only() -> None:
    kept = _table(ab=(0.9, 0.7))["V100"]
    a, b, c = (Usage(compute=0.0, bandwidth=0.0, model=name) for name in "abc")
    assert (kept.fractions([b, a]), kept.fractions([a])) == ((0.7, 0.9), (1.0,))
    assert (kept.fractions([a, c]), kept.fractions([a, b, a])) == ((0.0, 0.0), (0.0, 0.0, 0.0))
    assert kept.corrected(()) is kept


@pytest.mark.parametrize("others", ["bc", "bcd"])
def test_when_accounts_are_settled_a_job_is_with_each_partner_as_often_as_its_share_says(others: str) -> None:
    """All partners are alike. Every 16th round a job has one entry for all of them, and one of them is drawn."""
    predictors = _table(**{f"a{other}": (0.9, 0.9) for other in others})
    config, jobs = replace(CONFIG, predictors=predictors), [_job(name) for name in ("a", *others)]
    rounds = 48
    had = Counter(
        unit for number in range(rounds) for unit in _units(_planned(jobs, config=config, now=16 * number * ROUND_S))
    )
    assert had.keys() == {("a", other) for other in others}
    assert all(times == pytest.approx(rounds / len(others), abs=3) for times in had.values())
