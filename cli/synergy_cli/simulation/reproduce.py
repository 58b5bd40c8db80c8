"""`kube-synergy reproduce`: a table or figure of a paper, our figures beside the paper's."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.inputs import bad_input
from synergy_cli.simulation.kept import Kept
from synergy_cli.simulation.output import check_writable, progress_bar, write_whole
from synergy_cli.simulation.running import Running, running_options, tell_kept
from synergy_cli.simulation.seeds import seeds_of, seeds_option
from synergy_cli.text_table import text_table
from synergy_core.model.names import not_there
from synergy_simulator.grid import Case, run_all
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Findings, Inputs, interval_rows, over_draws
from synergy_simulator.reproductions.document import findings_page
from synergy_simulator.reproductions.registry import REPRODUCTIONS
from synergy_simulator.runners.runner import Runner


@click.command("reproduce", epilog=f"NAME is one of {', '.join(REPRODUCTIONS)}.")
@click.argument("name", metavar="NAME")
@click.option("--quick", is_flag=True, help="Run a smaller version, which takes a minute or two.")
@click.option(
    "--data",
    metavar="FOLDER",
    help="Folder with the papers' public tables (folders synergy, philly, gavel).",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the generated traces.")
@seeds_option
@click.option(
    "--report",
    "--plot",
    "report",
    metavar="OUT.html",
    help="File for the report with the charts (default: NAME.html).",
)
@running_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def reproduce_command(
    *,
    name: str,
    quick: bool,
    data: str | None,
    seed: int,
    seeds: tuple[int, ...],
    report: str | None,
    running: Running,
    as_json: bool,
) -> None:
    """Reproduce a table or figure of a paper."""
    if name not in REPRODUCTIONS:
        raise BadInputError(f"NAME: {not_there(name, REPRODUCTIONS)}")
    if data is not None and not Path(data).is_dir():
        raise BadInputError(f"--data: there is no folder {data}")
    out = report or f"{name}.html"
    check_writable("--report", out)
    started = time.perf_counter()
    with running.runner() as runner, bad_input():

        def run(cases: Sequence[Case]) -> list[Summary]:
            with progress_bar(name, len(cases)) as bar:
                return run_all(cases, runner=runner, progress=bar)

        folder = None if data is None else Path(data)
        draws = [
            REPRODUCTIONS[name](Inputs.of(folder, quick=quick, seed=one, run=run)) for one in seeds_of(seeds, seed)
        ]
        findings = _noted(over_draws(draws, seeds), runner)
        tell_kept(runner, name)
    write_whole(out, findings_page(name, findings))
    if as_json:
        by = {"seeds": list(seeds)} if seeds else {"seed": seed}
        used = {"quick": quick, **by, "data": data is not None}
        click.echo(json.dumps(_document(name, findings, time.perf_counter() - started, used)))
    else:
        click.echo(_text(findings, out))


def _noted(findings: Findings, runner: Runner) -> Findings:
    """Findings that tell how many of their simulations had been made before."""
    if not isinstance(runner, Kept) or not runner.taken:
        return findings
    note = f"{runner.taken} of {runner.cases} simulations were made before; their seconds are those of then."
    return replace(findings, differs=[*findings.differs, note])


def _text(findings: Findings, out: str) -> str:
    notes = [f"* {note}" for note in findings.differs]
    table = text_table(findings.header, findings.rows)
    if findings.intervals:
        table += "\n\n" + text_table(("figure", "mean", "95 % interval"), interval_rows(findings))
    return "\n".join([findings.title, "", table, "", "What differs from the paper:", *notes, "", f"report: {out}"])


def _document(name: str, findings: Findings, seconds: float, used: Mapping[str, object]) -> dict[str, object]:
    """The JSON form of `findings`. `used` says how they were made: at which size, with which seed and tables."""
    return {
        "name": name,
        **used,
        "title": findings.title,
        "figures": dict(findings.figures),
        **({"ci95": {key: one.half for key, one in findings.intervals.items()}} if findings.intervals else {}),
        "header": list(findings.header),
        "rows": [list(row) for row in findings.rows],
        "differs": list(findings.differs),
        "seconds": seconds,
    }
