"""Is the cluster well used, and what waits for what?"""

from grafana_foundation_sdk.builders import dashboard

from monitoring.panels import Query, increase, leader, lines, number, page, per_second, quantile


def build() -> dashboard.Dashboard:
    """The dashboard of the whole cluster."""
    made = page("kube-synergy-cluster", "kube-synergy / Cluster", "Is the cluster well used, and what waits for what?")
    held, total = leader("gpus", matching='use="held"'), leader("gpus", matching='use="all"')
    for panel in (
        number("GPUs in use", f"100 * {held} / {total}", "Part of all GPUs that pods hold.", "percent"),
        number("GPUs", total, "All GPUs of nodes that take jobs."),
        number("Shared GPUs", leader("gpus", matching='use="shared"'), "GPUs that several jobs share."),
        number("Jobs waiting", leader("queue_length"), "Jobs that wait for a place."),
        number("Longest wait", f"max({leader('oldest_waiting_seconds', 'tenant')})", "Of all waiting jobs.", "s"),
        number(
            "Speed gained",
            f"100 * ({leader('speed_gain_ratio')} - 1)",
            "Planned speed of running jobs above the speed at their GPU-proportional share, weighted by GPUs.",
            "percent",
            1,
        ),
        lines(
            "GPUs by type",
            [
                Query(leader("gpus", "gpu_type", matching='use="held"'), "{{gpu_type}} held"),
                Query(leader("gpus", "gpu_type", matching='use="all"'), "{{gpu_type}} all"),
            ],
            "GPUs that pods hold, beside all GPUs.",
        ),
        lines(
            "Waiting jobs by reason",
            [Query(leader("waiting_jobs", "reason"), "{{reason}}")],
            "The reason that each waiting job shows in its status.",
            stacked=True,
        ),
        lines(
            "Runs revoked in the last hour, by rule",
            [Query(increase("revocations_total", "rule"), "{{rule}}")],
            "yields, moves and sharing_was_slow are preemptions by the plan.",
            stacked=True,
        ),
        lines(
            "Wait before the first run",
            [
                Query(quantile(0.5, "first_start_wait_seconds", window="6h"), "median"),
                Query(quantile(0.9, "first_start_wait_seconds", window="6h"), "90th percentile"),
            ],
            "Of jobs that began in the last 6 hours.",
            "s",
        ),
        lines(
            "Runs",
            [
                Query(leader("allocations", "state"), "{{state}}"),
                Query(leader("late_jobs"), "will miss their deadline"),
            ],
            "Granted runs hold their GPUs; revoked runs are leaving.",
        ),
        lines(
            "GPUs busy with runs, by how the runs ended",
            [Query(per_second("operator_run_gpu_seconds_total", "purpose", "outcome"), "{{purpose}} {{outcome}}")],
            "GPU-seconds per second of ended runs. Purpose Profile is the cost of profiling.",
            stacked=True,
        ),
    ):
        made = made.with_panel(panel)
    return made
