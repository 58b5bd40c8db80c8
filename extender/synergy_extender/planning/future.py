"""The cluster as a plan and as a forecast begin with it. Pure; commands on a user's machine use it too."""

from dataclasses import replace

from synergy_core.model.config import Mode
from synergy_extender.cluster.state import ClusterState
from synergy_extender.planning.policy import PolicyInForce, plan_config
from synergy_extender.snapshot.failing import without_failing_nodes
from synergy_extender.snapshot.history import with_past
from synergy_extender.snapshot.snapshot import BuiltSnapshot, build_snapshot
from synergy_extender.tenants.planned import tenants_of


def planned_snapshot(state: ClusterState, policy: PolicyInForce, mode: Mode, now: float) -> BuiltSnapshot:
    """As the next round is planned, or as free room is filled."""
    spec = policy.spec
    return build_snapshot(
        without_failing_nodes(state, spec.failing_nodes, now),
        mode=mode,
        now=now,
        round_s=spec.round_seconds,
        tenants=tenants_of(spec),
        leaving_s=spec.preemption.max_checkpoint_seconds,
    )


def future_snapshot(state: ClusterState, policy: PolicyInForce, now: float) -> BuiltSnapshot:
    """As the next round is planned, with the jobs that have come so far and the options of plans."""
    built = planned_snapshot(state, policy, "round", now)
    past = with_past(built.snapshot, state.jobs.values(), plan_config(policy, "round"))
    return replace(built, base=past, clocks={})
