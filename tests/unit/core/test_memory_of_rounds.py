"""Many rounds of one leader: what is kept from round to round equals what is worked out anew."""

import json
import random
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.plan_digest import VARIANTS
from support.planner.plan_digest import job as any_job
from support.planner.planning import job, node
from synergy_core.cache import Memory
from synergy_core.checks import check
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig, PriorityQueues
from synergy_core.model.snapshot import FieldError, Job, Node, NodeGroup, Snapshot
from synergy_core.model.snapshot.passing import PASSING, lasts
from synergy_core.model.snapshot_format import parse_snapshot
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.selection.staying.islands import PackedPool

MECHANISMS = ("tune", "proportional", "drf-tune", "tetris-tune", "greedy")
ROUNDS = 6
GIB = 2**30


def _snapshot(rng: random.Random, names: range, nodes: int) -> Snapshot:
    """A cluster of few GPU types, and jobs of which most may run anywhere."""
    further = {"network": 1000} if rng.random() < 0.2 else {}
    cluster = [
        {
            "name": f"n{index}",
            "gpu_type": rng.choice(("A100", "V100")),
            "gpus": rng.choice((2, 4, 8)),
            "cpu_millis": rng.randint(2, 6) * 8000,
            "memory_bytes": rng.randint(100, 500) * GIB,
            "price_per_hour": 1.0,
            "further": further,
        }
        for index in range(nodes)
    ]
    jobs = [any_job(rng, f"j{index:03}", []) for index in names]
    for one in jobs:
        if rng.random() < 0.8:
            one |= {"nodes": None, "purpose": "train", "cpu_millis_min": 0, "memory_bytes_min": 0}
    found = parse_snapshot(json.dumps({"nodes": cluster, "jobs": jobs, "now": 10.0}))
    return replace(found, node_groups=_groups(rng, further)) if rng.random() < 0.3 else found


def _groups(rng: random.Random, further: dict[str, int]) -> tuple[NodeGroup, ...]:
    """Groups that could grow: a plan then makes further ones, of larger clusters."""
    return tuple(
        NodeGroup(
            name=f"g{index}",
            gpu_type=rng.choice(("A100", "V100")),
            gpus=rng.choice((2, 8)),
            cpu_millis=rng.randint(2, 6) * 8000,
            memory_bytes=rng.randint(100, 500) * GIB,
            further=further,
            price_per_hour=float(index + 1),
            max_nodes=3,
        )
        for index in range(2)
    )


def _moved_on(rng: random.Random, one: Job, running: Any) -> Job:
    """The job a round later: all objects that a caller could make anew are new ones."""
    times: dict[str, Any] = {"waiting_s": one.waiting_s + 300.0}
    if running is not None:
        received = {**one.received_s, running.gpu_type: one.received_s.get(running.gpu_type, 0.0) + 300.0}
        times = {"attained_gpu_s": one.attained_gpu_s + 300.0 * one.gpus, "received_s": received}
        times |= {"started_s": one.started_s or 0.0, "run_started_s": rng.choice((None, -500.0))}
        times |= {"steps_done": one.steps_done + 1}
    if rng.random() < 0.05:
        times |= rng.choice(
            ({"preemptible": not one.preemptible}, {"measured": {"A100": 1.0}}, {"nodes": ("n0", "n1")})
        )
    profiles = (
        {kind: replace(profile) for kind, profile in one.profiles.items()} if rng.random() < 0.5 else one.profiles
    )
    return replace(one, running=running, profiles=profiles, **times)


def _a_round_later(rng: random.Random, snapshot: Snapshot, result: Plan, step: int) -> Snapshot:
    given_now = {one.job: one for one in result.allocations}
    jobs = [_moved_on(rng, one, given_now.get(one.name)) for one in snapshot.jobs if rng.random() < 0.93]
    first = 100 * (step + 1)
    new = _snapshot(rng, range(first, first + rng.randint(0, 2)), 1).jobs
    nodes = snapshot.nodes
    if rng.random() < 0.15:
        nodes = (replace(nodes[0], cpu_millis_used=rng.randint(0, 4000)), *nodes[1:])
    jobs_now = [*jobs, *new]
    rng.shuffle(jobs_now)
    return replace(snapshot, nodes=nodes, jobs=tuple(jobs_now), now=snapshot.now + 300.0)


def _config(rng: random.Random, policy: str, mechanism: Any) -> PlanConfig:
    """Half of the time with further options, where the policy has them."""
    plain = PlanConfig(policy=policy, mechanism=mechanism)
    options = dict(rng.choice(VARIANTS))
    config = replace(plain, **{**options, "queues": PriorityQueues(**options.get("queues", {}))})
    try:
        check(config)
    except FieldError:
        return plain
    return rng.choice((plain, config))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(sorted(POLICIES)), st.sampled_from(MECHANISMS))
def test_rounds_in_a_row_are_planned_as_if_each_were_the_first(seed: int, policy: str, mechanism: str) -> None:
    rng = random.Random(seed)
    config = _config(rng, policy, mechanism)
    snapshot, memory = _snapshot(rng, range(rng.randint(4, 24)), rng.randint(2, 7)), Memory()
    for step in range(ROUNDS):
        if config.mode == "round":
            memory.solutions = Memory().solutions  # which allocation serves may depend on the earlier ones
        answer = plan(snapshot, config)
        assert plan(snapshot, config, memory) == answer
        snapshot = _a_round_later(rng, snapshot, answer, step)
        config = replace(config, mode=rng.choice(("round", "round", "fill")))


def _cluster(nodes: int, jobs: int) -> Snapshot:
    return Snapshot(
        nodes=tuple(node(f"n{index}", gpus=4) for index in range(nodes)),
        jobs=tuple(job(f"j{index:02}", arrival_s=float(index)) for index in range(jobs)),
    )


def _aged(snapshot: Snapshot, result: Plan) -> Snapshot:
    given_now = {one.job: one for one in result.allocations}
    jobs = (
        replace(one, running=given_now.get(one.name), attained_gpu_s=one.attained_gpu_s + 300.0)
        for one in snapshot.jobs
    )
    return replace(snapshot, jobs=tuple(jobs))


def _packed(memory: Memory, config: PlanConfig) -> PackedPool:
    (packed,) = memory.packed.of(config.mechanism, memory.pools).values()
    return packed


@pytest.mark.parametrize("mechanism", ["tune", "proportional"])
def test_nodes_where_the_same_jobs_stay_are_packed_from_memory(mechanism: Any) -> None:
    config, memory = PlanConfig(policy="fifo", mechanism=mechanism), Memory()
    snapshot = _cluster(nodes=3, jobs=12)
    for _ in range(2):  # placed, then staying
        snapshot = _aged(snapshot, plan(snapshot, config, memory))
    before = _packed(memory, config).islands
    assert len(before) == 3
    result = plan(snapshot, config, memory)
    after = _packed(memory, config).islands
    assert all(after[key] is one for key, one in before.items())
    (gone, *rest) = snapshot.jobs
    left = replace(_aged(snapshot, result), jobs=tuple(rest))
    plan(left, config, memory)
    kept = [key for key, one in _packed(memory, config).islands.items() if before.get(key) is one]
    assert len(kept) == 2
    assert gone.running is not None


def test_what_was_packed_on_other_nodes_or_under_another_mechanism_is_forgotten() -> None:
    tune, memory = PlanConfig(policy="fifo", mechanism="tune"), Memory()
    snapshot = _cluster(nodes=2, jobs=8)
    for _ in range(2):
        snapshot = _aged(snapshot, plan(snapshot, tune, memory))
    assert _packed(memory, tune).islands
    assert not _packed(memory, replace(tune, mechanism="proportional")).islands
    plan(snapshot, tune, memory)
    smaller: Node = replace(snapshot.nodes[0], cpu_millis_used=1000)
    memory.begin((smaller, *snapshot.nodes[1:]), tune.demand_tolerance)
    assert not _packed(memory, tune).islands


CHANGES: dict[str, Any] = {
    "name": "other",
    "gpus": 2,
    "weight": 3.0,
    "tenant": "red",
    "gpu_types": ("A100",),
    "profiles": {},
    "measured": {"A100": 2.0},
    "steps_total": 7,
    "exact_steps": 7.5,
    "pause_share": 0.5,
    "preemption_cost_s": 9.0,
    "skew": 0.9,
    "spread_speed": 0.5,
    "spread_speeds": {"V100": 0.5},
    "level_speeds": {"V100": {"0": 0.5}},
    "model": "bert",
    "batch_size": 8,
    "model_bytes": 10**9,
    "overlap": 0.5,
    "sharing": True,
    "sharing_across_tenants": True,
    "min_throughput_fraction": 0.5,
    "priority": 5,
    "urgent": True,
    "preemptible": False,
    "purpose": "profile",
    "cpu_millis_min": 100,
    "cpu_millis_max": 10**6,
    "memory_bytes_min": GIB,
    "memory_bytes_max": 10**13,
    "further_min": {"network": 1},
    "further_max": {"network": 10**9},
    "placement": "spread",
    "nodes": ("n0",),
    "deadline_s": 100.0,
    "gpus_per_worker": 1,
}
"""A job of which one of these differs is another one to the planner."""


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_job_of_which_a_lasting_field_changed_is_looked_at_anew(name: str) -> None:
    before = job("j", profiles={"V100": parse_snapshot(_document()).jobs[0].profiles["V100"]})
    changed = replace(before, **{name: CHANGES[name]})
    assert not lasts(before, changed)
    memory = Memory()
    memory.begin((node("n0"),), 0.05)
    info = memory.info(before)
    memory.begin((node("n0"),), 0.05)
    assert memory.info(changed).lasting is not info.lasting


def test_what_is_known_of_a_job_lasts_while_its_times_change() -> None:
    memory, first = Memory(), job("j")
    memory.begin((node("n0"),), 0.05)
    info = memory.info(first)
    later = replace(first, attained_gpu_s=5.0, waiting_s=3.0, steps_done=2, arrival_s=7.0)
    memory.begin((node("n0"),), 0.05)
    now = memory.info(later)
    assert (now.job, now.lasting, now.job_class) == (later, info.lasting, info.job_class)
    assert now.job is later


def test_passing_fields_are_fields_of_a_job() -> None:
    assert {one.name for one in fields(Job)} >= PASSING
    assert not PASSING & set(CHANGES)


def _document() -> str:
    profile = {"cpu_millis": [1000, 2000], "memory_bytes": [GIB], "steps_per_s": [[1.0], [2.0]]}
    return json.dumps({"nodes": [], "jobs": [{"name": "j", "gpus": 1, "profiles": {"V100": profile}}]})
