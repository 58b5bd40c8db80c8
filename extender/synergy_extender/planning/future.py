"""The cluster as a forecast begins with it. Pure; commands on a user's machine use it too."""

from dataclasses import replace

from synergy_extender.cluster.state import ClusterState
from synergy_extender.planning.policy import PolicyInForce, plan_config
from synergy_extender.snapshot.history import with_past
from synergy_extender.snapshot.snapshot import BuiltSnapshot, build_snapshot
from synergy_extender.tenants.planned import tenants_of


def future_snapshot(state: ClusterState, policy: PolicyInForce, now: float) -> BuiltSnapshot:
    """As the next round is planned, with the jobs that have come so far and the options of plans."""
    spec = policy.spec
    built = build_snapshot(
        state,
        mode="round",
        now=now,
        round_s=spec.round_seconds,
        tenants=tenants_of(spec),
        leaving_s=spec.preemption.max_checkpoint_seconds,
    )
    return replace(built, snapshot=with_past(built.snapshot, state.jobs.values(), plan_config(policy, "round")))
