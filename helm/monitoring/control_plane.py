"""Do operator, extender and planner keep up?"""

from grafana_foundation_sdk.builders import dashboard, timeseries

from monitoring.panels import Query, increase, leader, lines, number, page, per_second, quantile


def build() -> dashboard.Dashboard:
    """The dashboard of kube-synergy's own components."""
    made = page(
        "kube-synergy-control-plane", "kube-synergy / Control plane", "Do operator, extender and planner keep up?"
    )
    late = f"100 * {increase('late_rounds_total')} / {increase('rounds_total')}"
    for panel in (
        number("Leaders", "sum(kube_synergy_leader)", "Replicas of the extender that lead: 1."),
        number("Late rounds", f"{late} or vector(0)", "Part of the last hour's rounds.", "percent", 1),
        number("Refused jobs", leader("unwritten_jobs"), "Jobs whose newest write the API server refused."),
        number("Missing fields", leader("undeclared_fields"), "Fields that the served definitions lack."),
        number("Operator's queue", "sum(kube_synergy_operator_queue_length)", "Jobs that wait for a reconcile."),
        number("Oldest in it", "max(kube_synergy_operator_queue_oldest_seconds)", "Wait of the first of them.", "s", 1),
        *_planning(),
        *_requests(),
        *_operator(),
    ):
        made = made.with_panel(panel)
    return made


def _planning() -> list[timeseries.Panel]:
    return [
        lines(
            "Planning time",
            [
                Query(quantile(0.5, "plan_seconds", "mode"), "{{mode}} median"),
                Query(quantile(0.99, "plan_seconds", "mode"), "{{mode}} p99"),
                Query(quantile(0.99, "plan_write_seconds", "mode"), "{{mode}} written p99"),
            ],
            "Time of one plan() call, and to write what a pass changed.",
            "s",
        ),
        lines(
            "Plans that failed or fell back, in the last hour",
            [
                Query(increase("plan_failures_total"), "failed"),
                Query(increase("stand_in_allocations_total", "served"), "instead of an optimum: {{served}}"),
                Query(increase("clock_steps_total"), "clock steps"),
            ],
            "A fallback serves while the solver is still at work.",
        ),
        lines(
            "Estimated speeds",
            [
                Query(leader("estimated_speeds"), "speeds that are estimated"),
                Query(f"100 * {leader('estimate_error')}", "mean error of those measured since, %"),
            ],
            "Speeds on GPU types where a job was never measured.",
        ),
    ]


def _requests() -> list[timeseries.Panel]:
    return [
        lines(
            "Scheduler verbs, p99",
            [Query(quantile(0.99, "verb_seconds", "verb"), "{{verb}}")],
            "Time to answer kube-scheduler.",
            "s",
        ),
        lines(
            "Pods refused",
            [
                Query(per_second("verb_refusals_total", "verb"), "{{verb}}"),
                Query(per_second("ledger_refusals_total"), "no room left"),
            ],
            "Per second. A refused pod is tried again.",
            "reqps",
        ),
        lines(
            "Status writes",
            [
                Query(per_second("status_writes_total", "kind", "outcome"), "{{kind}} {{outcome}}"),
                Query(per_second("progress_writes_total"), "progress"),
            ],
            "Per second, by kind of change.",
            "reqps",
        ),
        lines(
            "Refused requests",
            [
                Query(per_second("refused_writes_total", "code"), "extender {{code}}"),
                Query(per_second("operator_api_errors_total", "code"), "operator {{code}}"),
            ],
            "Per second, by the API server's code. 404 and 409 occur in normal operation.",
            "reqps",
        ),
        lines(
            "Reports of workers",
            [
                Query(per_second("reports_total", "verdict"), "{{verdict}}"),
                Query(leader("progress_waiting"), "waiting to be written"),
            ],
            "Per second, by the verdict; and the backlog of progress.",
        ),
        lines(
            "Answer to a report",
            [
                Query(quantile(0.5, "report_seconds"), "median"),
                Query(quantile(0.99, "report_seconds"), "p99"),
            ],
            "Time to answer a worker's report.",
            "s",
        ),
    ]


def _operator() -> list[timeseries.Panel]:
    return [
        lines(
            "Reconciles",
            [Query(per_second("operator_reconciles_total", "outcome"), "{{outcome}}")],
            "Per second. `again` means that the operator acted on old data.",
            "reqps",
        ),
        lines(
            "Time of a reconcile",
            [
                Query(quantile(0.5, "operator_reconcile_seconds"), "median"),
                Query(quantile(0.99, "operator_reconcile_seconds"), "p99"),
            ],
            "With all its writes.",
            "s",
        ),
        lines(
            "Runs that ended",
            [
                Query(increase("operator_runs_total", "purpose", "outcome"), "{{purpose}} {{outcome}}"),
                Query(increase("operator_refusals_total", "reason"), "refused: {{reason}}"),
            ],
            "In the last hour.",
            stacked=True,
        ),
        lines(
            "Watches that had to restart",
            [Query(increase("operator_watch_restarts_total", "resource", "cause"), "{{resource}} {{cause}}")],
            "In the last hour.",
        ),
    ]
