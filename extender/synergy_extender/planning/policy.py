"""The SchedulingPolicy in force. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.parts.policy_options import planner_values
from synergy_api.parts.queues import ServiceHistory
from synergy_api.resources.scheduling_policy import (
    COST_POLICIES,
    PAIRS_POLICIES,
    SchedulingPolicySpec,
    SchedulingPolicyStatus,
)
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.model.config.policy_option import with_values
from synergy_extender.cluster.views import first_problem
from synergy_extender.decisions.history import pack_limit, service_samples, thresholds


@dataclass(frozen=True)
class PolicyInForce:
    """The policy that plans follow. `problem` says why the written one is not it; `missing`, that none is written;
    `unpriced`, which GPU types keep it from going by cost as it is written."""

    spec: SchedulingPolicySpec = field(default_factory=SchedulingPolicySpec)
    problem: str = ""
    missing: bool = False
    unpriced: tuple[str, ...] = ()
    history: ServiceHistory | None = None
    """What the policy's status has of the cluster's finished jobs."""
    planned_round: int = 0
    """The newest planned round that the policy's status names, 0 where it names none."""

    @property
    def leaving_s(self) -> float:
        """The longest time that a leaving run may take for its checkpoint."""
        return float(self.spec.preemption.max_checkpoint_seconds)


class ReadPolicy:
    """The policy in force, read again when another object is there: each report of a worker asks for it."""

    def __init__(self) -> None:
        self._read: tuple[Object | None, SchedulingPolicySpec, PolicyInForce] | None = None

    def of(self, written: Object | None, before: PolicyInForce) -> PolicyInForce:
        """Like `policy_in_force`."""
        known = self._read
        if known is not None and known[0] is written and (not known[2].problem or known[1] is before.spec):
            return known[2]
        found = policy_in_force(written, before)
        self._read = (written, before.spec, found)
        return found


def policy_in_force(written: Object | None, before: PolicyInForce) -> PolicyInForce:
    """The written policy; the defaults where there is none; where it does not parse, the last good one."""
    if written is None:
        return PolicyInForce(missing=True)
    try:
        spec = SchedulingPolicySpec.model_validate(written.get("spec") or {})
        return PolicyInForce(spec, history=history_of(written), planned_round=_planned_round(written))
    except ValidationError as error:
        problem = first_problem(error, within="spec")
        return PolicyInForce(before.spec, problem, history=history_of(written), planned_round=_planned_round(written))


def with_prices(policy: PolicyInForce, before: PolicyInForce, capacities: Iterable[NodeCapacity]) -> PolicyInForce:
    """The policy; where it goes by cost and GPUs have no price, with the last that does not in its place."""
    if policy.spec.policy not in COST_POLICIES:
        return policy
    unpriced = {node.gpu_type for node in capacities if node.gpu_type and node.gpus and node.price_per_hour <= 0}
    if not unpriced:
        return policy
    instead = before.spec if before.spec.policy not in COST_POLICIES else SchedulingPolicySpec()
    changed: dict[str, object] = {
        "policy": instead.policy,
        "agnostic": instead.agnostic,
        "placement_sensitive": instead.placement_sensitive,
    }
    if policy.spec.colocation == "gavel" and instead.policy not in PAIRS_POLICIES:
        changed["colocation"] = "auto"
    spec = policy.spec.model_copy(update=changed)
    return replace(policy, spec=spec, unpriced=tuple(sorted(unpriced)))


def history_of(written: Object) -> ServiceHistory | None:
    """What the policy's status has of the cluster's finished jobs; None if it makes no sense: it is then begun anew."""
    try:
        return SchedulingPolicyStatus.model_validate(written.get("status") or {}).history
    except ValidationError:
        return None


def _planned_round(written: Object) -> int:
    found = ((written.get("status") or {}).get("inForce") or {}).get("round")
    return found if isinstance(found, int) else 0


def plan_config(policy: PolicyInForce, mode: Mode) -> PlanConfig:
    """The policy as the planner takes it: as written, or as the cluster's finished jobs teach where it says so."""
    spec = policy.spec
    learned = {
        "queues.thresholds_gpu_s": thresholds(spec.queues, policy.history),
        "queues.service_gpu_s": service_samples(policy.history) if spec.policy == "2d-gittins" else (),
        "pack_limit": pack_limit(spec.placement, policy.history),
    }
    return with_values(PlanConfig(mode=mode), {**planner_values(spec), **learned})
