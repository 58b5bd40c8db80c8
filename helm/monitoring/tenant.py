"""What does each tenant hold, want, borrow, lend and wait for?"""

from grafana_foundation_sdk.builders import dashboard

from monitoring.panels import Query, leader, lines, page, tenants

_CHOSEN = 'tenant=~"$tenant"'
_BY_TYPE = "{{tenant}} {{gpu_type}}"


def build() -> dashboard.Dashboard:
    """The dashboard of tenants."""
    made = page(
        "kube-synergy-tenants", "kube-synergy / Tenants", "What does each tenant hold, want, borrow, lend and wait for?"
    )
    made = made.with_variable(tenants())
    held, of_all = f'{_CHOSEN}, use="held"', 'use="held"'
    for panel in (
        lines(
            "GPUs held",
            [Query(leader("tenant_gpus", "tenant", matching=held), "{{tenant}}")],
            "GPUs granted to the tenant's jobs.",
            stacked=True,
        ),
        lines(
            "GPUs wanted",
            [Query(leader("tenant_gpus", "tenant", matching=f'{_CHOSEN}, use="wanted"'), "{{tenant}}")],
            "GPUs that the tenant's waiting jobs ask for.",
            stacked=True,
        ),
        lines(
            "Share of the GPUs that jobs hold",
            [
                Query(
                    f"100 * {leader('tenant_gpus', 'tenant', matching=held)} "
                    f"/ ignoring (tenant) group_left () {leader('tenant_gpus', matching=of_all)}",
                    "{{tenant}}",
                )
            ],
            "Of all GPUs that kube-synergy's jobs hold.",
            "percent",
        ),
        lines(
            "Longest wait",
            [Query(leader("oldest_waiting_seconds", "tenant", matching=_CHOSEN), "{{tenant}}")],
            "Longest time that a waiting job has waited in its life.",
            "s",
        ),
        lines(
            "GPUs borrowed",
            [Query(leader("tenant_type_gpus", "tenant", "gpu_type", matching=f'{_CHOSEN}, use="borrowed"'), _BY_TYPE)],
            "GPUs beyond the guarantee of the tenant and those below it.",
        ),
        lines(
            "GPUs lent",
            [Query(leader("tenant_type_gpus", "tenant", "gpu_type", matching=f'{_CHOSEN}, use="lent"'), _BY_TYPE)],
            "GPUs of its guarantee that others have.",
        ),
        lines(
            "Unfinished jobs",
            [Query(leader("tenant_jobs", "tenant", matching=_CHOSEN), "{{tenant}}")],
            "Waiting, running and suspended jobs.",
            span=24,
        ),
    ):
        made = made.with_panel(panel)
    return made
