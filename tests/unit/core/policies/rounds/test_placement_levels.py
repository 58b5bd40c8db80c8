"""Policies that see how much a gang loses between racks (Gavel, section 3.1, by level)."""

from dataclasses import replace
from typing import Any

import pytest

from support.planner.planning import GIB, holding, job, node, places
from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Node, Profile, Snapshot
from synergy_core.plan import plan

EAST, WEST = ("n0", "n2"), ("n1", "n3")
NODES = [node(f"n{index}", 4, cpus=12, gib=250, domains=("west" if index % 2 else "east",)) for index in range(4)]
LOSES = {"V100": {"0": 0.3}}
MECHANISMS = ["proportional", "tune", "greedy", "drf", "drf-tune", "tetris-tune", "opt"]


def gang(name: str, gpus: int = 8, **more: Any) -> Job:
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((10.0,),))
    given = {"profiles": {"V100": profile}, "gpu_types": ("V100",), "steps_total": 10**9, "level_speeds": LOSES}
    return job(name, gpus, **{**given, **more})


def kept(name: str, on: str, gpus: int) -> Job:
    """A job that stays where it is."""
    held = holding(name, (on, gpus, 3 * gpus, 62.5 * gpus))
    return gang(name, gpus, level_speeds={}, running=held, preemptible=False)


def planned(*jobs: Job, nodes: list[Node] | None = None, memory: Memory | None = None, **config: Any) -> Plan:
    options = {"policy": "max-min-fairness", "mechanism": "proportional", "placement_sensitive": True, **config}
    return plan(Snapshot(nodes=tuple(nodes or NODES), jobs=jobs, round_s=360.0), PlanConfig(**options), memory)


ACROSS = holding("a", ("n0", 4, 12, 250), ("n1", 4, 12, 250))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_gang_that_loses_between_racks_moves_into_one(mechanism: str) -> None:
    spread = gang("a", running=ACROSS)
    assert set(places(planned(spread, mechanism=mechanism))["a"]) in (set(EAST), set(WEST))
    assert set(places(planned(spread, mechanism=mechanism, placement_sensitive=False))["a"]) == {"n0", "n1"}
    even = replace(spread, level_speeds={"V100": {"0": 0.96}})
    assert set(places(planned(even, mechanism=mechanism))["a"]) == {"n0", "n1"}, "not worth a move"


def test_the_plan_says_that_a_gang_is_across_racks() -> None:
    busy = [kept("k0", "n0", 4), kept("k1", "n1", 4)]
    (given,) = [one for one in planned(*busy, gang("a")).allocations if one.job == "a"]
    assert {share.node for share in given.workers} == {"n2", "n3"}
    assert given.spread
    again = planned(*busy, gang("a", running=given))
    assert not again.preempted, "where nothing is better it stays"
    (moved,) = [one for one in planned(busy[0], gang("a", running=given)).allocations if one.job == "a"]
    assert {share.node for share in moved.workers} == set(WEST), "once there is room it moves"
    assert not moved.spread


def test_two_gangs_that_run_crosswise_are_sorted_into_racks() -> None:
    other = replace(ACROSS, job="b", workers=holding("b", ("n2", 4, 12, 250), ("n3", 4, 12, 250)).workers)
    found = places(planned(gang("a", running=ACROSS), gang("b", running=other)))
    assert sorted(map(sorted, (found["a"], found["b"]))) == [sorted(EAST), sorted(WEST)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_job_that_is_as_fast_in_a_rack_as_on_a_node_stays_there(mechanism: str) -> None:
    held = holding("a", ("n0", 2, 6, 125), ("n2", 2, 6, 125))
    one = gang("a", 4, level_speeds={"V100": {"1": 0.98, "0": 0.3}}, running=held)
    assert places(planned(one, mechanism=mechanism))["a"] == {"n0": 2, "n2": 2}
    slow = replace(one, level_speeds={"V100": {"1": 0.6, "0": 0.3}})
    assert len(places(planned(slow, mechanism=mechanism))["a"]) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_job_that_is_fastest_within_a_rack_is_placed_there(mechanism: str) -> None:
    busy = [kept(f"k{index}", f"n{index}", 2) for index in range(4)]
    one = gang("a", 4, level_speeds={"V100": {"1": 1.5, "0": 0.3}})
    found = set(places(planned(*busy, one, mechanism=mechanism))["a"])
    assert found in (set(EAST), set(WEST))


def test_columns_by_level_are_in_the_problem() -> None:
    memory = Memory()
    three = gang("a", 4, level_speeds={"V100": {"1": 1.5, "0": 0.3}})
    planned(three, gang("b"), memory=memory)
    columns = ("V100", "V100_unconsolidated", "V100_within_1")
    assert [memory.solutions.last("a", column) > 0.5 for column in columns] == [False, False, True]


def test_domains_without_known_speeds_change_no_plan() -> None:
    flat = [replace(one, domains=()) for one in NODES]
    jobs = [gang("a", 4, level_speeds={}), gang("b", 2, level_speeds={}, arrival_s=1.0)]
    assert planned(*jobs) == planned(*jobs, nodes=flat)
