"""`kube-synergy calibrate`: are forecasts right?"""

import json
import time
from typing import Any

import click

from synergy_cli.options.policy import policy_options
from synergy_cli.simulation.inputs import Inputs, bad_input, input_options
from synergy_cli.simulation.options import options_of, run_options
from synergy_cli.simulation.output import progress_bar
from synergy_cli.simulation.running import Running, running_options, tell_kept
from synergy_cli.text_table import text_table
from synergy_simulator.forecast.calibration import Calibration, Coverage, calibrate


@click.command("calibrate")
@input_options
@policy_options("simulate")
@run_options
@click.option(
    "--moments", default=20, show_default=True, type=click.IntRange(1, 1000), help="Number of forecasts to compare."
)
@click.option(
    "--draws",
    default=20,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Number of random futures per forecast.",
)
@running_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def calibrate_command(
    *,
    inputs: Inputs,
    moments: int,
    draws: int,
    running: Running,
    as_json: bool,
    **how: Any,
) -> None:
    """Measure forecasts: stop a simulation at several moments, forecast, and compare with what then happens.

    A forecast knows the present jobs. It does not know which jobs will arrive.
    """
    workload = inputs.workload(sharing=how["sharing"])
    options = options_of(how, jobs=len(workload.tasks))
    started = time.perf_counter()
    with running.runner() as runner, bad_input():
        with progress_bar("forecasts", moments) as bar:
            found = calibrate(
                workload, options, moments=moments, draws=draws, seed=inputs.seed, runner=runner, told=bar
            )
        tell_kept(runner, "calibrate")
    seconds = time.perf_counter() - started
    click.echo(json.dumps(found.document(seconds=seconds)) if as_json else _text(found))


def _text(found: Calibration) -> str:
    rows = [_row("start", found.start), _row("end", found.finish)]
    header = ["80 % INTERVALS", "HOLD THE TRUTH", "OF", "BELOW", "ABOVE", "POINTS", "RIGHT", "ALL TOGETHER"]
    errors = [[_until(one.horizon_s), str(one.jobs), f"{one.median_error_s / 60:.0f} min"] for one in found.by_horizon]
    return f"{text_table(header, rows)}\n\n{text_table(['WAITING JOBS THAT START', 'JOBS', 'MEDIAN ERROR'], errors)}"


def _row(name: str, one: Coverage) -> list[str]:
    part, whole = (("-" if value is None else f"{value:.0%}") for value in (one.part, one.part_of_all))
    return [name, part, *map(str, (one.intervals, one.below, one.above, one.points, one.points_right)), whole]


def _until(horizon_s: float) -> str:
    return "later" if horizon_s == float("inf") else f"within {horizon_s / 3600:.0f} h"
