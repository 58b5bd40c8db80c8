"""`kube-synergy compare`: a grid of policies and mechanisms on one trace, side by side."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from synergy_cli.options.policy import policy_options
from synergy_cli.options.sharing import MODES
from synergy_cli.simulation.checks import (
    check_bandwidths,
    check_costs,
    check_draws,
    check_limits,
    check_placements,
    check_sharing,
    check_tenants,
)
from synergy_cli.simulation.inputs import Inputs, bad_input, input_options
from synergy_cli.simulation.options import options_of, run_options
from synergy_cli.simulation.output import check_writable, progress_bar, write_whole
from synergy_cli.simulation.running import Running, running_options, tell_kept
from synergy_cli.simulation.seeds import seeds_of, seeds_option
from synergy_cli.text_table import text_table
from synergy_core.mechanisms import MECHANISMS
from synergy_core.policies import POLICIES
from synergy_simulator import compare
from synergy_simulator.report.figures import figures_of
from synergy_simulator.report.intervals import intervals_of
from synergy_simulator.report.summary import Summary


def as_names(_context: click.Context, _option: click.Parameter, text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or len(set(names)) != len(names):
        raise click.BadParameter(f"must be names with commas between them, each once, is {text!r}")
    return names


@click.command("compare")
@input_options
@click.option(
    "--policies",
    default="fifo,srtf,las",
    show_default=True,
    callback=as_names,
    metavar="NAME,NAME,..",
    help=f"Some of {', '.join(sorted(POLICIES))}; or functions of your own, module:function.",
)
@click.option(
    "--mechanisms",
    default="proportional,tune",
    show_default=True,
    callback=as_names,
    metavar="NAME,NAME,..",
    help=f"Some of {', '.join(sorted(MECHANISMS))}.",
)
@policy_options("simulate", without=("policy", "mechanism", "colocation"))
@run_options
@click.option(
    "--colocation",
    default="none",
    show_default=True,
    callback=as_names,
    metavar="NAME,NAME,..",
    help=f"Which jobs share a GPU: some of {', '.join(MODES)}.",
)
@seeds_option
@running_options
@click.option("--report", metavar="OUT.html", help="Write figures and charts as one HTML file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def compare_command(
    *,
    inputs: Inputs,
    policies: tuple[str, ...],
    mechanisms: tuple[str, ...],
    colocation: tuple[str, ...],
    seeds: tuple[int, ...],
    running: Running,
    report: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Simulate a trace with each combination of policy and mechanism, on all cores or a Dask cluster."""
    check_writable("--report", report)
    workloads = [
        replace(
            inputs, trace=inputs.trace.replace("{seed}", str(drawn)) if seeds else inputs.trace, seed=drawn
        ).workload(sharing=how["sharing"])
        for drawn in seeds_of(seeds, inputs.seed)
    ]
    check_draws(workloads)
    workload = workloads[0]
    jobs = min(len(one.tasks) for one in workloads)
    grid = [
        options_of(
            {**how, "policy": policy, "mechanism": mechanism, "colocation": mode}, jobs=jobs, record=True, many=True
        )
        for policy in policies
        for mechanism in mechanisms
        for mode in colocation
    ]
    check_tenants(grid[0].tenants, workload)
    check_costs(policies, workload)
    check_limits(workload)
    check_bandwidths(workload, grid[0], profiles=inputs.profiles)
    check_placements(workload, grid[0])
    check_sharing(colocation, workload, sharing=how["sharing"])
    with running.runner() as runner, bad_input():
        with progress_bar("simulations", len(grid) * len(workloads)) as bar:
            found = compare(workload, draws=workloads[1:], options=grid, runner=runner, progress=bar)
        tell_kept(runner, "compare")
    if report is not None:
        write_whole(report, found.report(f"{inputs.trace} on {workload.cluster.gpus} GPUs"))
    if as_json:
        runs = [
            {
                "policy": options.plan.policy,
                "mechanism": options.plan.mechanism,
                "colocation": options.plan.colocation,
                **_document(of_seeds),
            }
            for options, *of_seeds in zip(grid, *found.draws, strict=True)
        ]
        told = {"seeds": list(seeds)} if seeds else {}
        click.echo(json.dumps({"trace": inputs.trace, "gpus": workload.cluster.gpus, **told, "runs": runs}))
    else:
        click.echo(side_by_side(found.draws))


def _document(draws: Sequence[Summary]) -> dict[str, Any]:
    """The figures of a run; of several seeds the means, and in `ci95` half the widths of their intervals."""
    documents = [one.metrics.document() for one in draws]
    if len(documents) == 1:
        return documents[0]
    found = intervals_of(documents)
    means = {name: one.mean for name, one in found.items()}
    return {**means, "ci95": {name: one.half for name, one in found.items()}}


def side_by_side(draws: Sequence[Sequence[Summary]]) -> str:
    """A column for each run."""
    rows = [(name, *values) for name, values in figures_of(draws)]
    return text_table(("", *(summary.label for summary in draws[0])), rows)
