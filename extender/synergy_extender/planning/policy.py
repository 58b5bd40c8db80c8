"""The SchedulingPolicy in force. Pure."""

from dataclasses import dataclass, field

from pydantic import ValidationError

from synergy_api.nodes import Object
from synergy_api.queues import ServiceHistory
from synergy_api.scheduling_policy import SchedulingPolicySpec, SchedulingPolicyStatus
from synergy_core import model as core
from synergy_extender.cluster.views import first_problem
from synergy_extender.planning.history import service_samples, thresholds


@dataclass(frozen=True)
class PolicyInForce:
    """The policy that plans follow. `problem` says why the written one is not it; `missing`, that none is written."""

    spec: SchedulingPolicySpec = field(default_factory=SchedulingPolicySpec)
    problem: str = ""
    missing: bool = False
    history: ServiceHistory | None = None
    """What the policy's status has of the cluster's finished jobs."""


def policy_in_force(written: Object | None, before: PolicyInForce) -> PolicyInForce:
    """The written policy; the defaults where there is none; where it does not parse, the last good one."""
    if written is None:
        return PolicyInForce(missing=True)
    try:
        spec = SchedulingPolicySpec.model_validate(written.get("spec") or {})
        return PolicyInForce(spec, history=history_of(written))
    except ValidationError as error:
        return PolicyInForce(before.spec, f"spec.{first_problem(error)}", history=history_of(written))


def history_of(written: Object) -> ServiceHistory | None:
    """What the policy's status has of the cluster's finished jobs; None, so that it is begun anew, where it makes no
    sense."""
    try:
        return SchedulingPolicyStatus.model_validate(written.get("status") or {}).history
    except ValidationError:
        return None


def plan_config(policy: PolicyInForce, mode: core.Mode) -> core.PlanConfig:
    """The policy as the planner takes it."""
    spec = policy.spec
    return core.PlanConfig(
        demand_tolerance=spec.profiling.demand_tolerance_percent / 100,
        policy=spec.policy,
        mechanism=spec.mechanism,
        mode=mode,
        profile_gpu_percent=spec.profiling.max_gpu_percent,
        queues=core.PriorityQueues(
            thresholds_gpu_s=thresholds(spec.queues, policy.history),
            promote_knob=spec.queues.promote_knob,
            service_gpu_s=service_samples(policy.history) if spec.policy == "2d-gittins" else (),
        ),
        minimum_run_s=float(spec.preemption.minimum_run_seconds),
    )
