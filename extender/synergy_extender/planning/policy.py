"""The SchedulingPolicy in force. Pure."""

from dataclasses import dataclass, field

from pydantic import ValidationError

from synergy_api.nodes import Object
from synergy_api.scheduling_policy import SchedulingPolicySpec
from synergy_core import model as core
from synergy_extender.cluster.views import first_problem


@dataclass(frozen=True)
class PolicyInForce:
    """The policy that plans follow. `problem` says why the written one is not it; `missing`, that none is written."""

    spec: SchedulingPolicySpec = field(default_factory=SchedulingPolicySpec)
    problem: str = ""
    missing: bool = False


def policy_in_force(written: Object | None, before: PolicyInForce) -> PolicyInForce:
    """The written policy; the defaults where there is none; where it does not parse, the last good one."""
    if written is None:
        return PolicyInForce(missing=True)
    try:
        return PolicyInForce(SchedulingPolicySpec.model_validate(written.get("spec") or {}))
    except ValidationError as error:
        return PolicyInForce(before.spec, f"spec.{first_problem(error)}")


def plan_config(spec: SchedulingPolicySpec, mode: core.Mode) -> core.PlanConfig:
    """The policy as the planner takes it."""
    return core.PlanConfig(
        demand_tolerance=spec.profiling.demand_tolerance_percent / 100,
        policy=spec.policy,
        mechanism=spec.mechanism,
        mode=mode,
        profile_gpu_percent=spec.profiling.max_gpu_percent,
    )
