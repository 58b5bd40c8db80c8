"""`kube-synergy reproduce`: a table or figure of a paper, our figures beside the paper's."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.kept import Kept
from synergy_cli.simulation.options import bad_input
from synergy_cli.simulation.output import check_writable, progress_bar, write_whole
from synergy_cli.text_table import text_table
from synergy_simulator.grid import Case, run_all, run_one
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.document import findings_page
from synergy_simulator.reproductions.registry import REPRODUCTIONS


@click.command("reproduce", epilog=f"NAME is one of {', '.join(REPRODUCTIONS)}.")
@click.argument("name", metavar="NAME")
@click.option("--quick", is_flag=True, help="Smaller, in a minute or less.")
@click.option(
    "--data",
    metavar="FOLDER",
    help="The papers' public tables: folders synergy, philly, gavel.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the traces that are drawn.")
@click.option("--plot", metavar="OUT.html", help="Where the plots go (default: NAME.html).")
@click.option("--processes", type=click.IntRange(1), help="Simulations at a time (default: one per core).")
@click.option(
    "--keep",
    metavar="FOLDER",
    help="Keep each finished simulation there and take those that are: go on after an interruption.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else there.")
def reproduce_command(
    *,
    name: str,
    quick: bool,
    data: str | None,
    seed: int,
    plot: str | None,
    processes: int | None,
    keep: str | None,
    as_json: bool,
) -> None:
    """Make a table or figure of a paper anew."""
    if name not in REPRODUCTIONS:
        raise BadInputError(f"NAME: {name!r} is not there; choose one of {', '.join(REPRODUCTIONS)}")
    if data is not None and not Path(data).is_dir():
        raise BadInputError(f"--data: there is no folder {data}")
    out = plot or f"{name}.html"
    check_writable("--plot", out)
    simulated = run_one
    if keep is not None:
        kept = Kept(Path(keep))
        kept.check()
        simulated = kept.run_one

    def run(cases: Sequence[Case]) -> list[Summary]:
        with progress_bar(name, len(cases)) as bar:
            return run_all(cases, processes=processes, progress=bar, run=simulated)

    started = time.perf_counter()
    with bad_input():
        inputs = Inputs.of(None if data is None else Path(data), quick=quick, seed=seed, run=run)
        findings = REPRODUCTIONS[name](inputs)
    write_whole(out, findings_page(name, findings))
    if as_json:
        click.echo(json.dumps(_document(name, findings, time.perf_counter() - started)))
    else:
        click.echo(_text(findings, out))


def _text(findings: Findings, out: str) -> str:
    notes = [f"* {note}" for note in findings.differs]
    table = text_table(findings.header, findings.rows)
    return "\n".join([findings.title, "", table, "", "What differs from the paper:", *notes, "", f"plots: {out}"])


def _document(name: str, findings: Findings, seconds: float) -> dict[str, object]:
    return {
        "name": name,
        "title": findings.title,
        "figures": dict(findings.figures),
        "header": list(findings.header),
        "rows": [list(row) for row in findings.rows],
        "differs": list(findings.differs),
        "seconds": seconds,
    }
