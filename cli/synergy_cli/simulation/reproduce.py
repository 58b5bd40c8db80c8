"""`kube-synergy reproduce`: a table or figure of a paper, our figures beside the paper's."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.inputs import bad_input
from synergy_cli.simulation.kept import Kept
from synergy_cli.simulation.output import check_writable, progress_bar, write_whole
from synergy_cli.simulation.seeds import seeds_of, seeds_option
from synergy_cli.text_table import text_table
from synergy_core.model.names import not_there
from synergy_simulator.grid import Case, run_all, run_one
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Findings, Inputs, interval_rows, over_draws
from synergy_simulator.reproductions.document import findings_page
from synergy_simulator.reproductions.registry import REPRODUCTIONS


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
@click.option(
    "--processes", type=click.IntRange(1), help="Number of simulations at the same time (default: one per core)."
)
@click.option(
    "--keep",
    metavar="FOLDER",
    help="Keep finished simulations in this folder and reuse those there. An interrupted command then continues.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def reproduce_command(
    *,
    name: str,
    quick: bool,
    data: str | None,
    seed: int,
    seeds: tuple[int, ...],
    report: str | None,
    processes: int | None,
    keep: str | None,
    as_json: bool,
) -> None:
    """Reproduce a table or figure of a paper."""
    if name not in REPRODUCTIONS:
        raise BadInputError(f"NAME: {not_there(name, REPRODUCTIONS)}")
    if data is not None and not Path(data).is_dir():
        raise BadInputError(f"--data: there is no folder {data}")
    out = report or f"{name}.html"
    check_writable("--report", out)
    kept = None if keep is None else Kept.of(keep)
    taken = Taken()

    def run(cases: Sequence[Case]) -> list[Summary]:
        there = [None] * len(cases) if kept is None else kept.found(cases)
        missing = [case for case, found in zip(cases, there, strict=True) if found is None]
        taken.cases += len(cases)
        taken.kept += len(cases) - len(missing)
        how = run_one if kept is None else kept.run_one
        with progress_bar(name, len(missing)) as bar:
            made = iter(run_all(missing, processes=processes, progress=bar, run=how))
        return [next(made) if found is None else found for found in there]

    started = time.perf_counter()
    with bad_input():
        folder = None if data is None else Path(data)
        draws = [
            REPRODUCTIONS[name](Inputs.of(folder, quick=quick, seed=one, run=run)) for one in seeds_of(seeds, seed)
        ]
        findings = over_draws(draws, seeds)
    if kept is not None:
        click.echo(taken.told(name, kept), err=True)
        findings = taken.noted(findings)
    write_whole(out, findings_page(name, findings))
    if as_json:
        by = {"seeds": list(seeds)} if seeds else {"seed": seed}
        used = {"quick": quick, **by, "data": data is not None}
        click.echo(json.dumps(_document(name, findings, time.perf_counter() - started, used)))
    else:
        click.echo(_text(findings, out))


@dataclass(slots=True)
class Taken:
    """How many simulations there were, and how many of them had been made before."""

    cases: int = 0
    kept: int = 0

    def told(self, name: str, where: Kept) -> str:
        """For whoever asked for it."""
        if not self.cases:
            return f"--keep: {name} has no simulations that could be kept"
        return f"--keep: {self.kept} of {self.cases} simulations were in {where.folder}"

    def noted(self, findings: Findings) -> Findings:
        """For whoever reads what came of it."""
        if not self.kept:
            return findings
        note = f"{self.kept} of {self.cases} simulations were made before; their seconds are those of then."
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
