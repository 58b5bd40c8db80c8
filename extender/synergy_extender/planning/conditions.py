"""What GPUPools and SchedulingPolicies say of themselves. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from synergy_api.base import Condition
from synergy_api.cluster.failing_nodes import told
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pool import PoolProblem
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.gpu_pool import FailingNodeStatus, GPUPoolStatus
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, InForce, SchedulingPolicyStatus, StandIn
from synergy_api.timestamps import format_time
from synergy_core.model.answer import SharesFrom
from synergy_core.selection.failing_nodes import FailingNode
from synergy_extender.cluster.state import ClusterState
from synergy_extender.condition import before, condition
from synergy_extender.growth.follow import NOBODY, Refused, pool_finding
from synergy_extender.growth.idle import is_idle, marks_on
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.snapshot.node_groups import request_states

AUTOSCALING = "Autoscaling"
"""Set on pools that can grow: whether nodes are asked for, and come."""
SCHEMAS_CURRENT = "SchemasCurrent"
"""Set on the policy in force while the served schemas lack a field that the extender writes."""
NODES_RELIABLE = "NodesReliable"
_MOST_FAILING = 64
_MOST_MESSAGES = 16
"""In the condition of a pool. A condition has room for 32,768 characters."""
_ALLOCATIONS: Mapping[str, StandIn] = {"cut-short": "CutShort", "last": "Last", "isolated": "Isolated"}


def pool_statuses(
    objects: Iterable[Object],
    state: ClusterState,
    problems: Sequence[PoolProblem],
    now: float,
    refused: Mapping[str, Refused] = NOBODY,
) -> dict[str, GPUPoolStatus]:
    """The status of each pool whose written one is not so already."""
    changed: dict[str, GPUPoolStatus] = {}
    requests = request_states(state, now)
    autoscaled = {pool.name for pool in state.pools if pool.spec.autoscaling is not None}
    for item in objects:
        name = str(item["metadata"]["name"])
        own = [c for c in state.capacities if c.pool == name]
        found = [problem.finding for problem in problems if name in problem.pools]
        words = _told(list(dict.fromkeys(finding.message for finding in found)))
        finding = Finding(found[0].reason, words) if found else say(Reason.NODES_FOUND)
        bad = [state.failing[one.name] for one in own if one.name in state.failing]
        status = GPUPoolStatus(
            nodes=len(own),
            gpus=sum(c.gpus for c in own),
            failing_nodes=[_failing_status(one) for one in bad[:_MOST_FAILING]],
            conditions=[condition(item, finding, holds=not found, now=now), *_reliable(item, bad, now)],
        )
        if name in autoscaled:
            own_requests = requests.get(name, ())
            asked, well = pool_finding(own_requests, refused.get(name), now, grows=state.grows)
            growth: dict[str, object] = {
                "conditions": [*status.conditions, condition(item, asked, holds=well, now=now, kind=AUTOSCALING)],
                "nodes_asked_for": sum(one.missing for one in own_requests if one.open),
                "nodes_idle": sum(is_idle(marks_on(state, c.name)) for c in own),
            }
            status = status.model_copy(update=growth)
        if status.to_wire() != (item.get("status") or {}):
            changed[name] = status
    return changed


def _failing_status(one: FailingNode) -> FailingNodeStatus:
    at = format_time(round(one.retry_at))
    return FailingNodeStatus(node=one.node, state=one.state.value, jobs=len(one.jobs), retry_at=at)


def _reliable(item: Object, bad: Sequence[FailingNode], now: float) -> list[Condition]:
    """The condition, which only pools have of which a node has failed jobs."""
    if not bad and before(item, NODES_RELIABLE) is None:
        return []
    found = [told(one) for one in bad]
    words = _told([one.message for one in found])
    finding = Finding(found[0].reason, words) if found else say(Reason.NODES_RELIABLE)
    return [condition(item, finding, holds=not found, now=now, kind=NODES_RELIABLE)]


def _told(messages: Sequence[str]) -> str:
    """The first of them: each node of a large pool can have its own."""
    more = len(messages) - _MOST_MESSAGES
    return "; ".join([*messages[:_MOST_MESSAGES], *([f"and {more} more"] if more > 0 else [])])


def policy_statuses(
    objects: Iterable[Object],
    policy: PolicyInForce,
    now: float,
    shares_from: SharesFrom = "",
    undeclared: str = "",
    *,
    planned: int | None = None,
) -> dict[str, SchedulingPolicyStatus]:
    """The status of each SchedulingPolicy whose written one is not so already. Only one of them is ever in force; it
    also names the fields that the served schemas do not declare, and `planned`, the newest round that is written."""
    changed: dict[str, SchedulingPolicyStatus] = {}
    for item in objects:
        name = str(item["metadata"]["name"])
        if name != DEFAULT_POLICY_NAME:
            finding = say(Reason.POLICY_IGNORED, default=DEFAULT_POLICY_NAME)
        elif policy.problem:
            finding = say(Reason.INVALID_POLICY, problem=policy.problem)
        elif policy.unpriced:
            finding = say(Reason.PRICE_MISSING, types=", ".join(policy.unpriced), instead=policy.spec.policy)
        else:
            finding = say(Reason.IN_FORCE)
        conditions = [condition(item, finding, holds=finding.reason is Reason.IN_FORCE, now=now)]
        if undeclared and name == DEFAULT_POLICY_NAME:
            older = say(Reason.OLDER_SCHEMA, fields=undeclared)
            conditions.append(condition(item, older, holds=False, now=now, kind=SCHEMAS_CURRENT))
        followed = _followed(policy, shares_from, planned) if name == DEFAULT_POLICY_NAME else None
        history = policy.history if name == DEFAULT_POLICY_NAME else None
        status = SchedulingPolicyStatus(in_force=followed, history=history, conditions=conditions)
        if status.to_wire() != (item.get("status") or {}):
            changed[name] = status
    return changed


def _followed(policy: PolicyInForce, shares_from: SharesFrom, planned: int | None) -> InForce:
    spec = policy.spec
    return InForce(
        policy=spec.policy,
        agnostic=spec.agnostic or None,
        placement_sensitive=spec.placement_sensitive or None,
        mechanism=spec.mechanism,
        round_seconds=spec.round_seconds,
        round=planned,
        allocation=_ALLOCATIONS.get(shares_from),
    )


def news(item: Object, conditions: Iterable[Condition]) -> Finding | None:
    """The event about the new conditions of `item`; None where they say what was said before, or all is well from the
    beginning."""
    for new in conditions:
        earlier = before(item, new.type)
        if earlier is None and new.status == "True":
            continue
        if earlier is None or earlier.reason != new.reason:
            return Finding(Reason(new.reason), new.message)
    return None
