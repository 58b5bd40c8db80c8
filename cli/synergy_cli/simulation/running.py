"""The options that say where many simulations run and whether they are kept."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.kept import Kept
from synergy_simulator.runners.dask_cluster import connected
from synergy_simulator.runners.errors import PlaceError, RunnerError
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The values of `running_options`. The fields have the names of the options."""

    processes: int | None
    dask: str | None
    keep: str | None

    @contextmanager
    def runner(self) -> Iterator[Runner]:
        """Where simulations run. Raises BadInputError for a place or folder that cannot be used."""
        if self.dask is not None and self.processes is not None:
            raise BadInputError("--processes: is for this machine; leave it out with --dask")
        folder = None if self.keep is None else Kept.folder_of(self.keep)
        with _failures_as_one_line(), self._place() as place:
            yield place if folder is None else Kept(folder, place)

    @contextmanager
    def _place(self) -> Iterator[Runner]:
        if self.dask is None:
            yield Processes(self.processes)
        else:
            with connected(self.dask) as cluster:
                yield cluster


@contextmanager
def _failures_as_one_line() -> Iterator[None]:
    try:
        yield
    except PlaceError as error:
        raise BadInputError(f"--dask: {error}") from error
    except RunnerError as error:
        raise click.ClickException(f"--dask: {error}") from error


def running_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of `Running` to a command, which gets them as its argument `running`."""

    @wraps(function)
    def command(**given: Any) -> None:
        values = {one.name: given.pop(one.name) for one in fields(Running)}
        function(running=Running(**values), **given)

    for option in (
        click.option(
            "--keep",
            metavar="FOLDER",
            help="Keep finished simulations in this folder and reuse those there. An interrupted command then "
            "continues.",
        ),
        click.option(
            "--dask",
            metavar="ADDRESS",
            help="Simulate on the Dask cluster whose scheduler has this address, such as tcp://HOST:8786.",
        ),
        click.option(
            "--processes",
            type=click.IntRange(1),
            help="Number of simulations at the same time on this machine (default: one per core).",
        ),
    ):
        command = option(command)
    return command


def tell_kept(runner: Runner, what: str) -> None:
    """Say on stderr how many simulations of `what` there were already, if any are kept."""
    if isinstance(runner, Kept):
        click.echo(runner.told(what), err=True)
