"""The tenants now, and their use in the past."""

from collections.abc import Iterable, Mapping
from typing import Any

from synergy_dashboard.api.answers import TenantPage, TenantsPage
from synergy_dashboard.facts import Usage
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope
from synergy_view.top import TenantRow


def tenants_page(live: LiveCluster, scope: Scope, usage: Iterable[Usage], since_s: float) -> TenantsPage:
    """The tenants that the user may see: those with visible jobs, now or in the history since `since_s`."""
    now = live.clock()
    rows = {row.tenant: row for row in live.rows.tenants(scope, now)}
    had: dict[str, list[Usage]] = {}
    for one in usage:
        had.setdefault(one.tenant, []).append(one)
    caps = {str(item["metadata"]["name"]): _caps(item) for item in live.tenants}
    gpus = {str(item["metadata"]["name"]): _summary(item) for item in live.tenants}
    return TenantsPage(
        now=now,
        since_s=since_s,
        tenants=[
            TenantPage(
                row=rows.get(name) or _idle(name),
                usage=had.get(name, []),
                never_preempted_gpus=caps.get(name, {}).get("maxNeverPreemptedGPUs"),
                max_weight=caps.get(name, {}).get("maxWeight"),
                guaranteed=gpus.get(name, {}).get("guaranteed", ""),
                borrowed=gpus.get(name, {}).get("borrowed", ""),
            )
            for name in sorted(rows.keys() | had.keys())
        ],
        hidden=live.rows.tenants_hidden(scope),
    )


def _caps(item: Mapping[str, Any]) -> Mapping[str, Any]:
    caps: Mapping[str, Any] = (item.get("spec") or {}).get("caps") or {}
    return caps


def _summary(item: Mapping[str, Any]) -> Mapping[str, str]:
    summary: Mapping[str, str] = (item.get("status") or {}).get("summary") or {}
    return summary


def _idle(tenant: str) -> TenantRow:
    return TenantRow(tenant=tenant, running=0, waiting=0, gpus_given=0, gpus_wanted=0, gpu_hours=0.0)
