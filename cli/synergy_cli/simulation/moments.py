"""`--snapshots` of `simulate`: snapshots of the simulated cluster, each a file."""

import json
from math import isfinite
from pathlib import Path

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.output import write_whole
from synergy_core.model.snapshot import Snapshot
from synergy_core.model.snapshot_format import snapshot_document
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.stops import Stops
from synergy_simulator.forecast.taken import snapshots_at


def as_moments(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """`S,S,..`, each a number of seconds; as they were written, because files are named after them."""
    if text is None:
        return ()
    parts = tuple(part.strip() for part in text.split(","))
    for part in parts:
        try:
            fine = isfinite(float(part)) and float(part) >= 0
        except ValueError:
            fine = False
        if not fine:
            raise click.BadParameter(f"must be seconds S,S,.. from 0 on, is {text!r}")
    if len({float(part) for part in parts}) < len(parts):
        raise click.BadParameter(f"names a moment twice: {text!r}")
    return parts


def snapshot_files(folder: str, moments: tuple[str, ...], options: Options) -> Stops:
    """Stops that write a file at each moment. Raises BadInputError where the folder cannot be made."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"--snapshots: cannot make {folder}: {error.strerror}") from error
    names = {float(text): text for text in moments}

    def take(moment: float, snapshot: Snapshot) -> None:
        write_whole(str(Path(folder) / f"{names[moment]}.json"), json.dumps(snapshot_document(snapshot)))

    return snapshots_at(list(names), options, take)


def tell_missing(folder: str, moments: tuple[str, ...]) -> None:
    """Say which moments came after the end of the simulation."""
    late = [text for text in moments if not (Path(folder) / f"{text}.json").exists()]
    if late:
        click.echo(f"note: the simulation ended before {', '.join(late)} s: no snapshot of it was written", err=True)
