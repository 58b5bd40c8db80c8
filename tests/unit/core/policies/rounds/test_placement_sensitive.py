"""Policies that see what a job keeps of its speed when it lies spread over many nodes (Gavel, section 3.1)."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.planner import promises
from support.planner.planning import GIB, holding, job, node, places, planned, reasons
from support.planner.snapshots import FUNGIBLE, configs_of, snapshots
from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Node, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.queue import Queue
from synergy_core.policies.rounds.shares_problem import problem_of
from synergy_core.policies.rounds.time_shares import BY_COST, NAMES

ROUND_S = 360.0


def _flat(name: str, gpus: int, speed: float = 10.0, **more: Any) -> Job:
    """A job with one speed on V100s, whatever CPU and memory it gets."""
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
    return job(name, gpus, **{"profiles": {"V100": profile}, "gpu_types": ("V100",), "steps_total": 10**9, **more})


def _plan(nodes: Sequence[Node], *jobs: Job, memory: Memory | None = None, **config: Any) -> Plan:
    settings_ = PlanConfig(
        **{"policy": "max-min-fairness", "mechanism": "proportional", "placement_sensitive": True, **config}
    )
    return plan(Snapshot(nodes=tuple(nodes), jobs=jobs, round_s=ROUND_S), settings_, memory)


def _kept(name: str, on: str, gpus: int) -> Job:
    """A job that stays where it is."""
    return _flat(name, gpus, running=holding(name, (on, gpus, 3 * gpus, 62.5 * gpus)), preemptible=False)


FOUR = [node(f"n{index}", 4, cpus=12, gib=250) for index in range(3)]


def test_who_is_slow_when_spread_is_moved_to_the_fewest_nodes_as_soon_as_there_is_room() -> None:
    spread = holding("slow", ("n0", 2, 6, 125), ("n1", 2, 6, 125))
    slow = _flat("slow", 4, spread_speed=0.3, running=spread)
    assert places(_plan(FOUR, slow))["slow"] in ({f"n{index}": 4} for index in range(3))
    assert places(_plan(FOUR, slow, placement_sensitive=False))["slow"] == {"n0": 2, "n1": 2}
    assert places(_plan(FOUR, replace(slow, spread_speed=0.96)))["slow"] == {"n0": 2, "n1": 2}, "not worth it"
    assert places(_plan(FOUR, slow, mode="fill"))["slow"] == {"n0": 2, "n1": 2}, "between rounds nobody moves"


def test_small_jobs_that_run_make_room_on_one_node_and_move() -> None:
    held = [_flat(f"one{index}", 1, running=holding(f"one{index}", (f"n{index}", 1, 3, 62.5))) for index in range(3)]
    result = _plan(FOUR, *held, _flat("slow", 4, spread_speed=0.3))
    assert len(places(result)["slow"]) == 1
    assert len(result.allocations) == 4
    assert len(result.preempted) == 1
    blind = _plan(FOUR, *held, _flat("slow", 4, spread_speed=0.3), placement_sensitive=False)
    assert len(places(blind)["slow"]) > 1


def test_gpus_that_nobody_else_wants_serve_spread_and_the_plan_says_so() -> None:
    busy = [_kept(f"kept{index}", f"n{index}", 2) for index in range(3)]
    slow = _flat("slow", 4, spread_speed=0.3)
    result = _plan(FOUR, *busy, slow)
    (given,) = [one for one in result.allocations if one.job == "slow"]
    assert len(given.workers) == 2
    assert given.spread
    assert given.steps_per_s == 10.0, "as it is on the fewest nodes: who measures divides by it"
    again = _plan(FOUR, *busy, replace(slow, running=given))
    assert given in again.allocations
    assert not again.preempted, "where nothing is better it stays"


def test_who_can_use_them_goes_before_who_would_lie_spread() -> None:
    busy = [_kept(f"kept{index}", f"n{index}", 2) for index in range(3)]
    others = [_flat(f"pair{index}", 2, spread_speed=0.3) for index in range(3)]
    result = _plan(FOUR, *busy, _flat("slow", 4, spread_speed=0.3), *others, policy="gavel-fifo")
    assert all(len(places(result)[one.name]) == 1 for one in others)
    assert reasons(result)["slow"] == "NoFreeGPU"


@pytest.mark.parametrize("mechanism", ["proportional", "tune", "opt"])
def test_who_is_faster_when_spread_takes_what_is_left_over(mechanism: str) -> None:
    busy = [_kept(f"kept{index}", f"n{index}", 3) for index in range(2)]
    result = _plan(FOUR, *busy, _flat("wide", 2, spread_speed=1.4), mechanism=mechanism)
    assert places(result)["wide"] == {"n0": 1, "n1": 1}
    result = _plan(FOUR, *busy, _flat("wide", 2, spread_speed=0.7), mechanism=mechanism)
    assert places(result)["wide"] == {"n2": 2}


@pytest.mark.parametrize("mechanism", ["proportional", "greedy", "drf", "tetris", "drf-tune", "tetris-tune"])
def test_every_mechanism_lets_gpus_serve_spread_rather_than_not_at_all_and_takes_them_from_nobody(
    mechanism: str,
) -> None:
    busy = [_kept(f"kept{index}", f"n{index}", 2) for index in range(3)]
    slow = _flat("slow", 4, spread_speed=0.3)
    result = _plan(FOUR, *busy, slow, mechanism=mechanism)
    (given,) = [one for one in result.allocations if one.job == "slow"]
    assert len(given.workers) == 2
    assert given.spread
    again = _plan(FOUR, *busy, replace(slow, running=given), mechanism=mechanism)
    assert places(again)["slow"] == places(result)["slow"]
    assert not again.preempted, "where nothing is better it stays"
    there_is_room = _plan(FOUR, *busy[:2], replace(slow, running=given), mechanism=mechanism)
    assert len(places(there_is_room)["slow"]) == 1


@pytest.mark.parametrize("mechanism", ["proportional", "greedy"])
def test_who_fits_spread_only_is_not_told_that_it_asks_for_too_much(mechanism: str) -> None:
    busy = [_kept(f"kept{index}", f"n{index}", 4) for index in range(2)]
    hungry = _flat("hungry", 4, spread_speed=0.3, cpu_millis_min=20_000)  # more than one node has
    assert reasons(_plan(FOUR, *busy, hungry, mechanism=mechanism))["hungry"] == "NoFreeCPUOrMemory"
    assert reasons(_plan(FOUR[:1], hungry, mechanism=mechanism))["hungry"] == "MinimumTooLarge"
    assert len(places(_plan(FOUR, hungry))["hungry"]) == 2


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("told", [{"spread_speed": 1.7e308}, {"spread_speed": 5e-324}, {"model_bytes": 10**18}])
@pytest.mark.parametrize("policy", ["max-min-fairness", "min-cost-slo", "finish-time-fairness"])
def test_differences_that_no_measurement_can_show_do_not_stop_a_plan(told: dict[str, Any], policy: str) -> None:
    nodes = [replace(one, price_per_hour=1.0) for one in FOUR]
    jobs = [_flat(name, gpus, **told) for name, gpus in (("one-node", 4), ("two-nodes", 8))]
    spread = _flat("spread", 2, placement="spread", **told)
    result = _plan(nodes, *jobs, spread, policy=policy, link_bytes_per_s=1e-300)
    assert result.allocations
    assert not result.shares_from


def test_by_type_a_job_lies_as_it_is_faster_there() -> None:
    nodes = [*FOUR, *(node(f"k{index}", 4, cpus=12, gib=250, gpu_type="K80") for index in range(2))]
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((10.0,),))
    both = {"profiles": {"V100": profile, "K80": profile}, "gpu_types": ("V100", "K80")}
    on_k80 = {"profiles": {"K80": profile}, "gpu_types": ("K80",)}
    busy = [
        _flat(name, 3, preemptible=False, running=holding(name, (where, 3, 9, 180), gpu_type="K80"), **on_k80)
        for name, where in (("kept0", "k0"), ("kept1", "k1"))
    ]
    one = _flat("one", 2, spread_speed=0.5, spread_speeds={"K80": 1.3}, **both)
    (given,) = [each for each in _plan(nodes, *busy, one).allocations if each.job == "one"]
    assert (given.gpu_type, len(given.workers), given.spread) == ("K80", 2, True)  # 1.3 times as fast as on a V100


def test_what_all_reduce_takes_counts_where_nothing_is_measured() -> None:
    spread = holding("slow", ("n0", 2, 6, 125), ("n1", 2, 6, 125))
    slow = _flat("slow", 4, 3.0, model_bytes=4 * 10**9, running=spread)
    assert len(places(_plan(FOUR, slow, link_bytes_per_s=1e9))["slow"]) == 1
    assert len(places(_plan(FOUR, slow, link_bytes_per_s=1e12))["slow"]) == 2, "the step hides it"
    assert len(places(_plan(FOUR, slow))["slow"]) == 2, "not known"
    assert len(places(_plan(FOUR, replace(slow, spread_speed=0.99), link_bytes_per_s=1e9))["slow"]) == 2, "measured"


def test_only_jobs_whose_speed_hangs_on_where_they_lie_have_two_columns() -> None:
    jobs = [
        _flat("split", 4, 8.0),
        _flat("spread", 4, 8.0, placement="spread"),
        _flat("close", 4, 8.0, placement="consolidate"),
        _flat("one", 1, 8.0),
        _flat("alike", 2, 8.0),
    ]
    parts = {"split": {"V100": (1.0, 0.5)}, "spread": {"V100": (0.25, 0.0), "T4": (1.0, 0.5)}}
    queue = Queue(0.0, tuple(jobs), lambda _: 8.0, speed_parts=lambda job: parts.get(job.name, {}))
    free, speeds = {"K80": 12, "V100": 12}, {one.name: {"V100": 8.0} for one in jobs}
    made = problem_of(queue, jobs, speeds, free)
    assert made.columns == ("K80", "V100", "V100_unconsolidated")
    assert made.column_type.tolist() == [0, 1, 1]
    assert made.throughputs[:, 1:].tolist() == [[8.0, 4.0], [2.0, 0.0], [8.0, 0.0], [8.0, 0.0], [8.0, 0.0]]
    assert problem_of(queue, jobs[1:], speeds, free).columns == ("K80", "V100")


def test_where_others_leave_no_room_to_lie_together_a_job_counts_as_slow_as_it_is() -> None:
    """Pods of others hold two GPUs of each V100 node: on K80s, half as fast, the job is faster."""
    taken = [node(f"n{index}", 4, gpus_used=2) for index in range(2)]
    nodes = [*taken, node("k", 4, gpu_type="K80")]
    profiles = {
        gpu_type: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
        for gpu_type, speed in (("V100", 10.0), ("K80", 5.0))
    }
    slow = _flat("slow", 4, spread_speed=0.3, profiles=profiles, gpu_types=("V100", "K80"))
    assert places(_plan(nodes, slow)) == {"slow": {"k": 4}}
    assert places(_plan(nodes, slow, placement_sensitive=False)) == {"slow": {"n0": 2, "n1": 2}}
    (given,) = _plan(taken, slow).allocations
    assert given.spread, "by the sizes of the nodes, whoever holds their GPUs"


def test_in_an_accounting_round_time_that_a_job_lay_spread_is_not_time_on_the_fewest_nodes() -> None:
    """Two jobs want one node; both had the same time, one of them spread: its turn comes first."""
    nodes = [node("n0", 4), node("n1", 1)]
    had = {"arrival_s": -100 * ROUND_S, "received_s": {"V100": 50 * ROUND_S}, "spread_speed": 0.3}
    near = _flat("a-near", 4, **had)
    far = _flat("b-far", 4, received_spread_s={"V100": 40 * ROUND_S}, **had)
    assert places(_plan(nodes, near, far)) == {"b-far": {"n0": 4}}
    assert places(_plan(nodes, near, replace(far, received_spread_s={}))) == {"a-near": {"n0": 4}}


def test_jobs_of_one_gpu_and_of_no_known_difference_make_the_same_plan() -> None:
    jobs = [_flat(f"j{index}", 1 + index % 4, 5.0 + index, arrival_s=float(index)) for index in range(9)]
    jobs[0] = replace(jobs[0], spread_speed=0.2)  # of one GPU
    memory = Memory()
    with_it = _plan(FOUR, *jobs, memory=memory)
    assert with_it.allocations
    without = _plan(FOUR, *jobs, placement_sensitive=False)
    assert {one.job: places(with_it)[one.job] for one in with_it.allocations} == places(without)
    _plan(FOUR, *jobs, _flat("split", 2, spread_speed=0.5), memory=memory)
    assert memory.solutions.last("split", "V100") > 0.0
    assert memory.solutions.last("split", "V100_unconsolidated") == 0.0


def test_the_last_allocation_serves_with_its_placements_when_time_runs_out() -> None:
    memory = Memory()
    jobs = [_flat("wide", 4, spread_speed=1.4), _flat("near", 4, spread_speed=0.5)]
    first = _plan(FOUR, *jobs, memory=memory)
    assert not first.shares_from
    memory.solutions.budget = Budget(lambda: 0.0)
    again = _plan(FOUR, *jobs, _flat("new", 1), memory=memory)
    assert again.shares_from == "last"
    assert places(again)["near"] == places(first)["near"]
    assert memory.solutions.last("wide", "V100_unconsolidated") == pytest.approx(1.0)


@pytest.mark.parametrize("policy", sorted(set(NAMES) - BY_COST))
def test_every_policy_over_types_knows_placements(policy: str) -> None:
    spread = holding("slow", ("n0", 2, 6, 125), ("n1", 2, 6, 125))
    slow = _flat("slow", 4, spread_speed=0.3, running=spread)
    assert len(places(_plan(FOUR, slow, policy=policy))["slow"]) == 1


@pytest.mark.parametrize("policy", sorted(BY_COST))
def test_policies_by_cost_keep_deadlines_by_the_speed_in_the_better_placement(policy: str) -> None:
    nodes = [node(f"n{index}", 4, price_per_hour=1.0) for index in range(2)]
    slow = _flat("slow", 4, spread_speed=0.3, steps_total=36_000, deadline_s=4_000.0)
    result = _plan(nodes, slow, policy=policy)
    assert len(places(result)["slow"]) == 1
    assert not result.late


def test_a_policy_without_a_matrix_has_no_such_form() -> None:
    with pytest.raises(FieldError, match=r"placement_sensitive: las has no allocation matrix.*max-min-fairness"):
        planned(FOUR, [_flat("one", 1)], policy="las", placement_sensitive=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    snapshots(disturbed=True),
    configs_of(
        [*FUNGIBLE, "greedy", "tetris"],
        NAMES,
        placement_sensitive=st.just(True),
        pack_limit=st.sampled_from((None, 0.3)),
        link_bytes_per_s=st.sampled_from((None, 1e9)),
    ),
    st.randoms(use_true_random=False),
)
def test_every_promise_is_kept_whatever_the_order_and_the_memory(
    snapshot: Snapshot, config: PlanConfig, rng: random.Random
) -> None:
    mixed = {"A100": 1.4, "V100": 0.3}
    known = tuple(replace(one, spread_speeds=mixed if one.skew > 0.5 else {}) for one in snapshot.jobs)
    priced_nodes = tuple(replace(one, price_per_hour=1.0) for one in snapshot.nodes)
    priced = replace(snapshot, nodes=priced_nodes, jobs=known)
    made = plan(priced, config)
    promises.all_promises(priced, made, fill=config.mode == "fill")
    jobs = list(priced.jobs)
    rng.shuffle(jobs)
    memory = Memory()
    plan(replace(priced, jobs=priced.jobs[:2]), config, memory)
    assert plan(replace(priced, jobs=tuple(jobs)), config, memory) == made
