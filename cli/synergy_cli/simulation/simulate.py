"""`kube-synergy simulate`: a trace on a cluster under one policy and mechanism."""

import json
from pathlib import Path
from typing import Any

import click

from synergy_cli.errors import BadInputError
from synergy_cli.options.policy import policy_options
from synergy_cli.simulation.checks import (
    check_bandwidths,
    check_costs,
    check_limits,
    check_placements,
    check_sharing,
    check_tenants,
    warn_of_free_preemption,
)
from synergy_cli.simulation.inputs import Inputs, bad_input, input_options
from synergy_cli.simulation.moments import as_moments, snapshot_files, tell_missing
from synergy_cli.simulation.options import options_of, run_options
from synergy_cli.simulation.output import check_writable, per_job_csv, progress_bar, write_whole
from synergy_cli.text_table import text_table
from synergy_simulator import simulate
from synergy_simulator.engine.tenancy import TenantFigures
from synergy_simulator.report.figures import figures


@click.command("simulate")
@input_options
@policy_options("simulate")
@run_options
@click.option("--per-job", metavar="OUT.csv", help="Write one line per job.")
@click.option("--report", metavar="OUT.html", help="Write figures and charts as one HTML file.")
@click.option("--snapshots", metavar="DIR", help="Write DIR/S.json, a snapshot of the cluster at each second S.")
@click.option("--snapshot-at", metavar="S,S,..", callback=as_moments, help="Seconds at which --snapshots writes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def simulate_command(
    *,
    inputs: Inputs,
    per_job: str | None,
    report: str | None,
    snapshots: str | None,
    snapshot_at: tuple[str, ...],
    as_json: bool,
    **how: Any,
) -> None:
    """Simulate a trace of jobs on a cluster. The planner is the same code as on a real cluster."""
    if (snapshots is None) != (not snapshot_at):
        raise BadInputError("--snapshots: goes with --snapshot-at S,S,..; give both or neither")
    check_writable("--per-job", per_job)
    check_writable("--report", report)
    if report is not None and per_job is not None and Path(report).resolve() == Path(per_job).resolve():
        raise BadInputError(f"--report: {report} is where --per-job goes; give another file")
    workload = inputs.workload(sharing=how["sharing"])
    options = options_of(how, jobs=len(workload.tasks), record=report is not None)
    check_sharing([how["colocation"]], workload, sharing=how["sharing"])
    check_tenants(options.tenants, workload)
    check_limits(workload)
    check_costs([options.plan.policy], workload)
    check_bandwidths(workload, options, profiles=inputs.profiles)
    check_placements(workload, options)
    warn_of_free_preemption([options.plan.policy], options)
    stops = None if snapshots is None else snapshot_files(snapshots, snapshot_at, options)
    name = f"{options.plan.policy} on {options.plan.mechanism}"
    with progress_bar(name, len(workload.tasks)) as bar, bad_input():
        result = simulate(workload, options=options, progress=bar, stops=stops)
    if snapshots is not None:
        tell_missing(snapshots, snapshot_at)
    if per_job is not None:
        write_whole(per_job, per_job_csv(result.rows))
    if report is not None:
        write_whole(report, result.report(f"{inputs.trace} on {workload.cluster.gpus} GPUs"))
    if as_json:
        click.echo(json.dumps({**result.metrics.document(), **result.metrics.tenants_document()}))
    else:
        rows = [(name, *values) for name, values in figures([result.metrics])]
        click.echo(text_table((name, ""), rows))
        if result.metrics.tenants is not None:
            click.echo(_tenants_table(result.metrics.tenants))


def _tenants_table(found: TenantFigures) -> str:
    rows = [
        (one.name or "(none)", *map(_hours, (one.guaranteed, one.used, one.borrowed, one.lent)))
        for one in found.tenants
    ]
    return "\n" + text_table(("GPU-hours of tenants", "guaranteed", "used", "borrowed", "lent"), rows)


def _hours(hours: float) -> str:
    return f"{hours:.1f}"
