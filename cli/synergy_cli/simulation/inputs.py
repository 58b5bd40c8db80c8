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
            click.option(
                "--trace", required=True, metavar="T.csv", help="Trace of jobs, in the native format or a paper's."
            ),
            click.option(
                "--profiles",
                metavar="P.json",
                help="Sensitivity matrices, or `built-in`. Without it, CPU and memory do not affect any job's speed.",
            ),
            click.option(
                "--unconsolidated",
                is_flag=True,
                help="Slow down jobs on more nodes than necessary, as the profiles say (TYPE_unconsolidated).",
            ),
            click.option("--cluster", required=True, metavar="C.yaml", help="The cluster's pools of nodes."),
            click.option(
                "--usage",
                metavar="U.csv",
                help="GPU usage by model (model,gpu_util,gmem_util,gmem), or `built-in`. These models may share a GPU.",
            ),
            click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn at random."),
            click.option(
                "--split",
                callback=as_split,
                metavar="I,L,S",
                default="20,70,10",
                show_default=True,
                help="Percentages of image, language and speech models for jobs whose trace names no model.",
            ),
            click.option(
                "--jobs",
                "part",
                callback=as_window,
                metavar="A:B",
                help="Simulate only this range of the trace's jobs.",
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
