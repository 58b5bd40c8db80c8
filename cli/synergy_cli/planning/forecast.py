"""`kube-synergy forecast`: when the jobs of a snapshot start and end."""

import json
import time

import click

from synergy_cli.planning.futures import ahead, draw_options, field_errors, history_of, read_snapshot
from synergy_cli.text_table import text_table
from synergy_core.collector import collector_paused
from synergy_simulator.forecast.forecast import Forecast, Forecaster
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.quantiles import Quantiles


@click.command("forecast")
@click.argument("snapshot", metavar="SNAPSHOT.json")
@click.option(
    "--history",
    metavar="TRACE.csv",
    help="Draw future arrivals from this trace instead of from the snapshot's history.",
)
@draw_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def forecast_command(
    *, snapshot: str, history: str | None, draws: int, seed: int, horizon_s: float | None, as_json: bool
) -> None:
    """Forecast when each job of a snapshot (- for standard input) starts and ends, with and without future arrivals."""
    state = read_snapshot(snapshot)
    past = None if history is None else history_of(history)
    started = time.perf_counter()
    with field_errors(), collector_paused():
        found = Forecaster(state, options_of_snapshot(state), past, horizon_s=horizon_s).forecast(draws, seed)
    seconds = time.perf_counter() - started
    if as_json:
        click.echo(json.dumps(found.document(seconds=seconds)))
    else:
        click.echo(_forecast_text(found, seconds))


def _forecast_text(found: Forecast, seconds: float) -> str:
    rows = [
        [one.job, one.state, *_range(one.start, found.now), *_range(one.finish, found.now), one.unknown or ""]
        for one in found.jobs
    ]
    header = ["JOB", "STATE", "START IN", "80 %", "END IN", "80 %", "UNKNOWN"]
    by = f"{found.draws} draws of arrivals" if found.draws else "no arrivals: there is no history"
    return f"{text_table(header, rows)}\n{by}, {seconds:.1f} s" if rows else f"no job; {by}"


def _range(one: Quantiles, now: float) -> tuple[str, str]:
    return ahead(one.p50, now), "" if one.is_point else f"{ahead(one.p10, now)} to {ahead(one.p90, now)}"
