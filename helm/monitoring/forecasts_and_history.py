"""Are forecasts right, and is the history complete?"""

from grafana_foundation_sdk.builders import dashboard, timeseries

from monitoring.panels import Query, increase, leader, lines, number, page, per_second, quantile

_RECORDED = "kube_synergy_dashboard_recorded_timestamp_seconds"


def build() -> dashboard.Dashboard:
    """The dashboard of what tells people about jobs: forecasts, the recorder and the web page."""
    made = page(
        "kube-synergy-forecasts-history",
        "kube-synergy / Forecasts and history",
        "Are forecasts right, and is the history complete?",
    )
    for panel in (
        number("Forecasts off", f"max({leader('forecasts_off', 'reason')})", "1: jobs are told no estimated start."),
        number("History behind", f"time() - max({_RECORDED})", "Since the recorder last wrote.", "s"),
        number("Backlog", "sum(kube_synergy_dashboard_recorder_backlog)", "Changes that are not written yet."),
        number("Database", "max(kube_synergy_dashboard_database_bytes)", "Size of the history.", "bytes", 1),
        number("Skipped changes", "sum(kube_synergy_dashboard_recorder_skipped_total)", "That could not be read."),
        number("Pages open", "sum(kube_synergy_dashboard_streams)", "Pages that follow the cluster."),
        *_forecasts(),
        *_history(),
    ):
        made = made.with_panel(panel)
    return made


def _forecasts() -> list[timeseries.Panel]:
    inside = increase("forecast_starts_total", "horizon", matching='place="inside"', window="24h")
    every = increase("forecast_starts_total", "horizon", window="24h")
    return [
        lines(
            "Error of estimated starts, median",
            [Query(quantile(0.5, "forecast_start_error_seconds", "horizon", window="24h"), "{{horizon}} before")],
            "Of jobs that started in the last 24 hours, by how long before the start the estimate was made.",
            "s",
        ),
        lines(
            "Starts inside the 80 % interval",
            [Query(f"100 * {inside} / {every}", "{{horizon}} before")],
            "Of jobs that started in the last 24 hours. Well calibrated forecasts have 80 %.",
            "percent",
        ),
        lines(
            "Time of a forecast",
            [
                Query(quantile(0.5, "forecast_seconds", window="1h"), "median"),
                Query(quantile(0.99, "forecast_seconds", window="1h"), "p99"),
            ],
            "With the start of its process.",
            "s",
        ),
        lines(
            "Forecasts that failed, in the last hour",
            [Query(increase("forecast_failures_total"), "failed")],
            "After three in a row, jobs are told nothing.",
        ),
    ]


def _history() -> list[timeseries.Panel]:
    errors = per_second("dashboard_requests_total", "route", "code", matching='code=~"5.."')
    return [
        lines(
            "Recording",
            [
                Query("sum(kube_synergy_dashboard_recorder_backlog)", "changes that are not written yet"),
                Query(increase("dashboard_recorder_failures_total"), "errors of the database in the last hour"),
                Query(increase("dashboard_recorder_skipped_total"), "skipped changes in the last hour"),
            ],
            "After an error of the database, the recorder begins anew where it last wrote.",
        ),
        lines(
            "Size of the history",
            [Query("max(kube_synergy_dashboard_database_bytes)", "database")],
            "SQLite's file or PostgreSQL's database.",
            "bytes",
        ),
        lines(
            "Requests of the page",
            [
                Query(per_second("dashboard_requests_total", "code"), "{{code}}"),
                Query(errors, "failed: {{route}} {{code}}"),
            ],
            "Per second, by the code of the answer.",
            "reqps",
        ),
        lines(
            "Answer to a request, p99",
            [Query(quantile(0.99, "dashboard_request_seconds", "route"), "{{route}}")],
            "Time to answer a request of the page. What-if simulates and takes seconds.",
            "s",
        ),
    ]
