"""The options that name a workload, and the workload that they name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.values import as_split, as_window
from synergy_simulator import InputError, PolicyError, SettingError, Workload, load
from synergy_simulator.workloads.generator import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The values of `input_options`. The fields have the names of the options, except `part`, which is `--jobs`."""

    trace: str
    profiles: str | None
    unconsolidated: bool
    cluster: str
    usage: str | None
    seed: int
    split: Split
    part: tuple[int, int] | None

    def workload(self, *, sharing: bool) -> Workload:
        """Read and join the files. With `sharing` jobs may share GPUs."""
        with bad_input():
            return load(
                self.trace,
                self.profiles,
                self.cluster,
                jobs=self.part,
                split=self.split,
                seed=self.seed,
                usage=self.usage,
                unconsolidated=self.unconsolidated,
                share=sharing,
            )


def input_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of `Inputs` to a command, which gets them as its argument `inputs`."""

    @wraps(function)
    def command(**given: Any) -> None:
        values = {one.name: given.pop(one.name) for one in fields(Inputs)}
        function(inputs=Inputs(**values), **given)

    for option in reversed(
        (
            click.option("--trace", required=True, metavar="T.csv", help="Jobs: the native table, or a paper's."),
            click.option(
                "--profiles", metavar="P.json", help="Matrices, or `built-in`. Without, no job minds CPU and memory."
            ),
            click.option(
                "--unconsolidated",
                is_flag=True,
                help="Jobs on more nodes than they must have are as slow as the profiles say (TYPE_unconsolidated).",
            ),
            click.option("--cluster", required=True, metavar="C.yaml", help="Pools of nodes."),
            click.option(
                "--usage",
                metavar="U.csv",
                help="What models do to a GPU (model,gpu_util,gmem_util,gmem), or `built-in`: those jobs may share.",
            ),
            click.option("--seed", default=0, show_default=True, help="Seed of what is drawn."),
            click.option(
                "--split",
                callback=as_split,
                metavar="I,L,S",
                default="20,70,10",
                show_default=True,
                help="Image, language, speech: models drawn for jobs whose trace tells none.",
            ),
            click.option(
                "--jobs",
                "part",
                callback=as_window,
                metavar="A:B",
                help="Simulate this window of the trace's jobs only.",
            ),
        )
    ):
        command = option(command)
    return command


_PROBLEMS = {"unconsolidated": "--profiles has no speeds of types that end in _unconsolidated"}
"""What is wrong, in the command line's words."""


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn what the simulator says of its input into the command line's one line."""
    try:
        yield
    except SettingError as error:
        problem = _PROBLEMS.get(error.setting, error.problem)
        raise BadInputError(f"--{error.setting}: {problem}") from error
    except InputError as error:
        raise BadInputError(str(error)) from error
    except PolicyError as error:
        raise BadInputError(f"--policy: {error.problem}") from error
