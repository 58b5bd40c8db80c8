"""What GPUPools and the SchedulingPolicy say of themselves. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import ValidationError

from synergy_api.base import Condition
from synergy_api.gpu_pool import GPUPoolStatus
from synergy_api.nodes import Object
from synergy_api.pools import NodeCapacity, Problem
from synergy_api.scheduling_policy import SchedulingPolicyStatus
from synergy_api.timestamps import format_time
from synergy_extender.planning.policy import PolicyInForce

VALID = "Valid"


def pool_statuses(
    objects: Iterable[Object], capacities: Sequence[NodeCapacity], problems: Sequence[Problem], now: float
) -> dict[str, GPUPoolStatus]:
    """The status of each pool whose written one is not so already."""
    changed: dict[str, GPUPoolStatus] = {}
    for item in objects:
        name = str(item["metadata"]["name"])
        own = [c for c in capacities if c.pool == name]
        found = [problem for problem in problems if name in problem.pools]
        condition = _condition(
            item,
            found[0].reason if found else "NodesFound",
            "; ".join(dict.fromkeys(p.message for p in found)) or "the pool and its nodes agree",
            holds=not found,
            now=now,
        )
        status = GPUPoolStatus(nodes=len(own), gpus=sum(c.gpus for c in own), conditions=[condition])
        if status.to_wire() != (item.get("status") or {}):
            changed[name] = status
    return changed


def policy_status(written: Object, policy: PolicyInForce, now: float) -> SchedulingPolicyStatus | None:
    """The policy's status, or None where the written one is so already."""
    condition = _condition(
        written,
        "Invalid" if policy.problem else "InForce",
        policy.problem or "plans follow this policy",
        holds=not policy.problem,
        now=now,
    )
    status = SchedulingPolicyStatus(conditions=[condition])
    return status if status.to_wire() != (written.get("status") or {}) else None


def _condition(item: Object, reason: str, message: str, *, holds: bool, now: float) -> Condition:
    """The condition `Valid`; its transition time moves only when its status flips."""
    before = _before((item.get("status") or {}).get("conditions") or [])
    status = "True" if holds else "False"
    since = before.last_transition_time if before is not None and before.status == status else format_time(now)
    return Condition(
        type=VALID,
        status="True" if holds else "False",
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=item["metadata"].get("generation"),
    )


def _before(conditions: Iterable[Mapping[str, object]]) -> Condition | None:
    for condition in conditions:
        if condition.get("type") == VALID:
            try:
                return Condition.model_validate(condition)
            except ValidationError:
                return None
    return None
