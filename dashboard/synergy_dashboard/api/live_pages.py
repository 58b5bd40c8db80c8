"""Pages made from the watched state in memory: the cluster and the queue."""

import math
from collections.abc import Mapping
from typing import Any

from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_api.timestamps import parse_time
from synergy_dashboard.api.answers import Change, ClusterPage, Forecast, Policy, Quantiles, QueuePage
from synergy_dashboard.facts import UseSample
from synergy_dashboard.live.changes import RowChanges, reasons_of, tenants_of
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope
from synergy_view.seen import SeenJob

_DEFAULTS = SchedulingPolicySpec()
_UNKNOWN = Quantiles(p10=None, p50=None, p90=None)


def cluster_page(live: LiveCluster, scope: Scope, use: list[UseSample], since_s: float | None) -> ClusterPage:
    """The GPUs and the jobs that hold them now."""
    now, rows = live.clock(), live.rows
    live.refresh()
    hidden = (*rows.running_names(), *rows.waiting_names())
    reasons = rows.reasons(scope)
    return ClusterPage(
        now=now,
        policy=policy_of(live.policy, now),
        types=rows.types(now),
        nodes=rows.nodes(scope),
        jobs=rows.running(scope),
        tenants=rows.tenants(scope, now),
        waiting=sum(reasons.values()),
        waiting_by_reason=reasons,
        hidden=0 if scope.everything else sum(not scope.names(name) for name in hidden),
        use=use,
        recorded_since_s=since_s,
    )


def queue_page(live: LiveCluster, scope: Scope) -> QueuePage:
    """The waiting jobs."""
    now, names = live.clock(), live.rows.waiting_names()
    found = {name: forecast_of(live.rows.jobs[name]) for name in names if scope.names(name)}
    return QueuePage(
        now=now,
        rows=live.rows.queue(scope, now),
        forecasts={name: one for name, one in found.items() if one is not None},
        hidden=0 if scope.everything else sum(not scope.names(name) for name in names),
    )


def change_of(live: LiveCluster, changes: RowChanges, scope: Scope) -> Change:
    """The change, without the parts that the user may not see."""
    now, visible = live.clock(), changes.seen_by(scope)
    policy = policy_of(live.policy, now)
    return Change(
        now=now,
        jobs=visible.jobs,
        queue=visible.queue,
        nodes=visible.nodes,
        types=visible.types,
        tenants=None if visible.groups is None else tenants_of(visible.groups, scope),
        waiting_by_reason=None if visible.reasons is None else reasons_of(visible.reasons, scope),
        round_ends_s=policy.round_ends_s if policy is not None else None,
        policy=policy if visible.policy else None,
    )


def policy_of(written: Mapping[str, Any] | None, now: float) -> Policy | None:
    """The policy in force as the extender reports it. Without a report, the SchedulingPolicy as written."""
    if written is None:
        return None
    spec = written.get("spec") or {}
    force = {**spec, **((written.get("status") or {}).get("inForce") or {})}
    round_s = float(force.get("roundSeconds", _DEFAULTS.round_seconds))
    return Policy(
        name=str(force.get("policy", _DEFAULTS.policy)),
        mechanism=str(force.get("mechanism", _DEFAULTS.mechanism)),
        round_s=round_s,
        # rounds are stretches of Unix time
        round_ends_s=(math.floor(now / round_s) + 1) * round_s if round_s > 0 else None,
        spec=dict(spec),
    )


def round_s_of(live: LiveCluster) -> float:
    """The length of a round now."""
    policy = policy_of(live.policy, live.clock())
    return policy.round_s if policy is not None else float(_DEFAULTS.round_seconds)


def forecast_of(job: SeenJob) -> Forecast | None:
    """The start that the extender estimates in the job's status, if there is one."""
    entry = job.status.queue
    start, by = (getattr(entry, name, None) for name in ("estimated_start", "estimated_start_by"))
    if start is None and by is None:
        return None
    quantiles = Quantiles(
        p10=None,
        p50=parse_time(start) if start is not None else None,
        p90=parse_time(by) if by is not None else None,
    )
    return Forecast(start_s=quantiles, finish_s=_UNKNOWN, unknown=None)
