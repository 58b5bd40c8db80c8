"""The policy in force, and what pools and policy say of themselves."""

from typing import Any, get_args

import pytest

from support.extender.cluster import NOW, cluster, node_object
from synergy_api.cluster.pool import PoolProblem, read_pools
from synergy_api.cluster.pools import node_capacities, pool_problems
from synergy_api.reasons import ENTRIES, Reason, ReasonPlace, say
from synergy_api.resources.scheduling_policy import (
    COST_POLICIES,
    PAIRS_POLICIES,
    PolicyName,
    SchedulingPolicySpec,
    TimeSharingPolicyName,
)
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import PriorityQueues
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds import time_shares
from synergy_extender.planning.conditions import news, policy_statuses, pool_statuses
from synergy_extender.planning.policy import PolicyInForce, ReadPolicy, plan_config, policy_in_force, with_prices

GOOD = {"metadata": {"name": "default", "generation": 2}, "spec": {"policy": "fifo", "roundSeconds": 20}}
BAD = {"metadata": {"name": "default", "generation": 3}, "spec": {"policy": "whim"}}


def test_without_a_policy_the_defaults_hold() -> None:
    good = policy_in_force(GOOD, PolicyInForce())
    assert not good.missing
    assert policy_in_force(None, good) == PolicyInForce(SchedulingPolicySpec(), missing=True)


def test_an_invalid_policy_leaves_the_last_good_one_in_force_and_says_so() -> None:
    good = policy_in_force(GOOD, PolicyInForce())
    assert (good.spec.policy, good.spec.round_seconds, good.problem) == ("fifo", 20, "")
    bad = policy_in_force(BAD, good)
    assert bad.spec == good.spec
    assert bad.problem.startswith("spec.policy: ")


def test_the_planner_gets_the_policy() -> None:
    spec = SchedulingPolicySpec.model_validate(
        {"policy": "srtf", "mechanism": "proportional", "profiling": {"maxGpuPercent": 40}}
    )
    config = plan_config(PolicyInForce(spec), "fill")
    assert (config.policy, config.mechanism, config.mode, config.profile_gpu_percent) == (
        "srtf",
        "proportional",
        "fill",
        40,
    )


def test_the_planner_gets_the_knobs_of_the_queues() -> None:
    queues = {"thresholdsGPUSeconds": [60, 3600], "promoteKnob": 2}
    spec = {"policy": "2d-las", "queues": queues, "preemption": {"minimumRunSeconds": 30, "payback": 8}}
    config = plan_config(policy_in_force({**GOOD, "spec": spec}, PolicyInForce()), "round")
    assert (config.policy, config.queues.thresholds_gpu_s, config.queues.promote_knob) == ("2d-las", (60.0, 3600.0), 2)
    assert (config.minimum_run_s, config.preemption_payback) == (30.0, 8.0)
    usual = plan_config(policy_in_force(GOOD, PolicyInForce()), "round")
    assert (usual.queues, usual.minimum_run_s, usual.preemption_payback) == (PriorityQueues(), 0.0, 10.0)


def test_thresholds_that_do_not_ascend_are_told_by_their_field() -> None:
    bad = policy_in_force({**GOOD, "spec": {"queues": {"thresholdsGPUSeconds": [60, 60]}}}, PolicyInForce())
    assert bad.problem.startswith("spec.queues.thresholdsGPUSeconds: ")
    assert "must ascend" in bad.problem


def test_every_name_of_a_policy_is_one_of_the_planner_s() -> None:
    assert set(get_args(PolicyName)) == POLICIES.keys()
    assert set(get_args(TimeSharingPolicyName)) == set(time_shares.NAMES)
    assert set(PAIRS_POLICIES) == time_shares.WITH_PAIRS


@pytest.mark.parametrize("policy", PAIRS_POLICIES)
def test_pairs_by_the_allocation_matrix_are_planned(policy: str) -> None:
    spec = SchedulingPolicySpec.model_validate({"policy": policy, "colocation": "gavel"})
    config = plan_config(PolicyInForce(spec), "round")
    assert config.colocation == "gavel"
    assert plan(core.Snapshot(nodes=(), jobs=(), now=0.0, round_s=20.0), config).allocations == ()


@pytest.mark.parametrize("policy", get_args(TimeSharingPolicyName))
def test_every_policy_over_several_gpu_types_is_one_that_the_planner_has(policy: str) -> None:
    spec = SchedulingPolicySpec.model_validate({"policy": policy, "agnostic": True, "placementSensitive": True})
    config = plan_config(PolicyInForce(spec), "round")
    assert (config.policy, config.aware, config.placement_sensitive) == (policy, False, True)
    assert policy in time_shares.NAMES
    assert (policy in COST_POLICIES) == (policy in time_shares.BY_COST)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"agnostic": True}, "spec: agnostic needs one of the policies allox"),
        ({"placementSensitive": True}, "spec: placementSensitive needs one of the policies allox"),
        ({"policy": "las", "colocation": "gavel"}, "spec: colocation gavel needs one of the policies fifo, "),
        ({"policy": "hierarchical", "tenants": [{"name": "a"}, {"name": "a"}]}, "spec: tenants name a 2 times"),
        ({"policy": "hierarchical", "tenants": [{"name": "a", "weight": -1}]}, "spec.tenants.0.weight: "),
    ],
)
def test_what_the_api_server_would_refuse_is_not_followed_either(spec: dict[str, Any], problem: str) -> None:
    bad = policy_in_force({"metadata": {"name": "default"}, "spec": spec}, PolicyInForce())
    assert bad.spec == SchedulingPolicySpec()
    assert bad.problem.startswith(problem)


def test_a_policy_by_cost_needs_the_price_of_every_gpu() -> None:
    def pools(*priced: str) -> list[Any]:
        spec = [
            {"nodeSelector": {"nvidia.com/gpu.product": name}, "gpuType": name, "pricePerHour": 2.0} for name in priced
        ]
        return read_pools([{"metadata": {"name": str(place)}, "spec": one} for place, one in enumerate(spec)])[0]

    nodes = [node_object(f"n{name}", gpu_type=name) for name in ("K80", "V100")]
    spec = {"policy": "min-cost-slo", "roundSeconds": 40, "placementSensitive": True}
    asked = PolicyInForce(SchedulingPolicySpec.model_validate(spec))
    before = PolicyInForce(SchedulingPolicySpec.model_validate({"policy": "makespan", "agnostic": True}))
    assert with_prices(asked, before, node_capacities(nodes, pools("K80", "V100"))) == asked
    capacities = node_capacities(nodes, pools("K80"))
    found = with_prices(asked, before, capacities)
    assert (found.spec.policy, found.spec.agnostic, found.spec.round_seconds) == ("makespan", True, 40)
    assert not found.spec.placement_sensitive, "as the policy that serves says"
    assert with_prices(asked, found, capacities) == found, "the next pass too"
    assert with_prices(asked, asked, capacities).spec.policy == "2d-las"
    assert with_prices(before, asked, capacities) == before
    pairs = PolicyInForce(asked.spec.model_copy(update={"colocation": "gavel"}))
    stand_ins = [with_prices(pairs, one, capacities).spec for one in (before, pairs)]
    assert [(one.policy, one.colocation) for one in stand_ins] == [("makespan", "gavel"), ("2d-las", "auto")]
    seeing = PolicyInForce(asked.spec.model_copy(update={"policy": "makespan"}))
    told = written({"metadata": {"name": "default"}, "spec": {}}, seeing)["status"]["inForce"]
    assert told["placementSensitive"] is True
    item = {"metadata": {"name": "default"}, "spec": {"policy": "min-cost-slo"}}
    status = written(item, found)["status"]
    assert (status["inForce"]["policy"], status["inForce"]["agnostic"]) == ("makespan", True)
    (condition,) = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "PriceMissing")
    assert "GPUs of type V100 have no price; makespan serves in its place" in condition["message"]


def written(item: dict[str, Any], policy: PolicyInForce, now: float = NOW) -> dict[str, Any]:
    (status,) = policy_statuses([item], policy, now).values()
    return {**item, "status": status.to_wire()}


def test_the_policys_condition_is_written_once_and_its_time_moves_when_it_flips() -> None:
    good = policy_in_force(GOOD, PolicyInForce())
    first = written(GOOD, good)
    (condition,) = first["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Valid", "True", "InForce")
    assert condition["observedGeneration"] == 2
    assert policy_statuses([first], good, NOW + 60) == {}
    bad = policy_in_force(BAD, good)
    second = written({**BAD, "status": first["status"]}, bad, NOW + 60)
    (condition,) = second["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Invalid")
    assert condition["message"].startswith("spec.policy: ")
    assert "the last valid policy stays in force: correct this field" in condition["message"]
    assert condition["lastTransitionTime"] == format_time(NOW + 60)
    worse = policy_in_force({**BAD, "spec": {"mechanism": "magic"}}, bad)
    (condition,) = written(second, worse, NOW + 90)["status"]["conditions"]
    assert condition["lastTransitionTime"] == format_time(NOW + 60)


def test_the_status_tells_what_serves_while_no_new_allocation_is_found_in_time() -> None:
    good = policy_in_force(GOOD, PolicyInForce())
    for shares_from, shown in (("cut-short", "CutShort"), ("last", "Last"), ("isolated", "Isolated"), ("", None)):
        (status,) = policy_statuses([GOOD], good, NOW, shares_from).values()  # type: ignore[arg-type]
        assert status.in_force is not None
        assert status.in_force.allocation == shown


def test_the_status_tells_which_policy_plans_follow() -> None:
    good = policy_in_force(GOOD, PolicyInForce())
    followed = {"policy": "fifo", "mechanism": "tune", "roundSeconds": 20}
    assert written(GOOD, good)["status"]["inForce"] == followed
    assert written(BAD, policy_in_force(BAD, good))["status"]["inForce"] == followed, "the last valid one"
    other = {"metadata": {"name": "other", "generation": 1}, "spec": {"policy": "srtf"}}
    assert "inForce" not in written(other, good)["status"]


def test_pools_say_how_many_gpus_they_have_and_what_contradicts() -> None:
    def pool(name: str, selector: dict[str, str]) -> dict[str, Any]:
        spec = {"nodeSelector": selector, "gpuType": "V100"}
        return {"metadata": {"name": name, "generation": 1}, "spec": spec}

    product = {"nvidia.com/gpu.product": "V100"}
    objects = [pool("a", product), pool("b", product), pool("idle", {"x": "y"}), {"metadata": {"name": "broken"}}]
    pools, unreadable = read_pools(objects)
    state = cluster([node_object("n1"), node_object("n2")], pools=objects)
    problems = [*unreadable, *pool_problems(pools, state.capacities)]
    statuses = pool_statuses(objects, state, problems, NOW)
    assert {
        name: (s.nodes, s.gpus, s.conditions[0].status, s.conditions[0].reason) for name, s in statuses.items()
    } == {
        "a": (2, 16, "False", "AmbiguousPool"),
        "b": (0, 0, "False", "AmbiguousPool"),
        "idle": (0, 0, "False", "NoNodes"),
        "broken": (0, 0, "False", "InvalidPool"),
    }
    assert all(ReasonPlace.POOL in ENTRIES[Reason(s.conditions[0].reason)].places for s in statuses.values())
    fine = [pool("a", product)]
    state = cluster([node_object("n1")], pools=fine)
    (status,) = pool_statuses(fine, state, [], NOW).values()
    assert (status.nodes, status.gpus, status.conditions[0].reason) == (1, 8, "NodesFound")
    assert pool_statuses([{**fine[0], "status": status.to_wire()}], state, [], NOW + 9) == {}


def test_a_condition_that_somebody_spoilt_is_written_anew() -> None:
    good = policy_in_force(GOOD, PolicyInForce())
    spoilt = {**GOOD, "status": {"conditions": [{"type": "Valid"}, {"type": "Other"}]}}
    assert written(spoilt, good)["status"]["conditions"][0]["lastTransitionTime"] == format_time(NOW)


def test_a_policy_of_another_name_is_told_that_it_is_ignored() -> None:
    other = {"metadata": {"name": "mine", "generation": 1}, "spec": {"policy": "fifo"}}
    statuses = policy_statuses([GOOD, other], policy_in_force(GOOD, PolicyInForce()), NOW)
    (condition,) = statuses["mine"].conditions
    assert (condition.status, condition.reason) == ("False", "Ignored")
    assert "only the SchedulingPolicy named default is in force" in condition.message
    assert statuses["default"].conditions[0].reason == "InForce"
    assert all(ReasonPlace.POLICY in ENTRIES[Reason(s.conditions[0].reason)].places for s in statuses.values())


def test_events_tell_what_is_new_once_and_not_that_all_was_well_from_the_start() -> None:
    good = policy_in_force(GOOD, PolicyInForce())
    (fine,) = policy_statuses([GOOD], good, NOW).values()
    assert news(GOOD, fine.conditions) is None
    (broken,) = policy_statuses([BAD], policy_in_force(BAD, good), NOW).values()
    told = news(BAD, broken.conditions)
    assert told is not None
    assert told.reason == "Invalid"
    known = {**BAD, "status": broken.to_wire()}
    assert news(known, broken.conditions) is None
    healed = news(known, fine.conditions)
    assert healed is not None
    assert healed.reason == "InForce"


def test_a_problem_of_each_node_of_a_large_pool_has_room_in_its_condition() -> None:
    """A condition that is too long would keep all other objects from their statuses."""
    problems = [
        PoolProblem(say(Reason.RESERVED_TOO_LARGE, node=f"node-{number:04}.example.com"), ("pool",))
        for number in range(1000)
    ]
    objects = [{"metadata": {"name": "pool", "uid": "u", "generation": 1}, "spec": {}}]
    (status,) = pool_statuses(objects, cluster([]), problems, NOW).values()
    assert status.conditions[0].reason == "ReservedTooLarge"
    assert status.conditions[0].message.endswith("; and 984 more")


def test_a_policy_is_read_again_when_another_object_is_there_only() -> None:
    read, before = ReadPolicy(), PolicyInForce()
    written = {"spec": {"policy": "las", "roundSeconds": 20}, "status": {"inForce": {"round": 7}}}
    found = read.of(written, before)
    assert (found.spec.policy, found.planned_round) == ("las", 7)
    assert read.of(written, found) is found
    other = read.of({"spec": {"policy": "fifo"}}, found)
    assert (other.spec.policy, other.planned_round) == ("fifo", 0)
    wrong = {"spec": {"policy": "whim"}}
    assert read.of(wrong, other).spec.policy == "fifo"
    assert read.of(wrong, found).spec.policy == "las", "the last good one may be another meanwhile"
