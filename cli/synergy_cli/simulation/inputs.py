"""Options that say what is simulated, and the workload that they make."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.checks import check_window
from synergy_cli.simulation.values import as_split, as_window
from synergy_simulator.engine.sharing import BUILT_IN, read_usages
from synergy_simulator.inputs.clusters import read_cluster, shared
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.profiles import ProfileTable, read_profiles
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.workloads.generator import Split, with_models
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload, with_usages


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What is simulated."""
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


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn what the simulator says of its input into the command line's one line."""
    try:
        yield
    except InputError as error:
        raise BadInputError(str(error)) from error


def workload_of(
    *,
    trace: str,
    profiles: str | None,
    unconsolidated: bool,
    cluster: str,
    usage: str | None,
    seed: int,
    split: Split,
    part: tuple[int, int] | None,
    sharing: bool,
) -> Workload:
    """Read and join the inputs."""
    with bad_input():
        pools = shared(read_cluster(Path(cluster))) if sharing else read_cluster(Path(cluster))
        table = None if profiles is None else profiles_of(profiles)
        jobs = read_trace(Path(trace))
        if part is not None:
            check_window("--jobs", part, len(jobs))
            jobs = jobs[slice(*part)]
        if table is not None:
            jobs = with_models(jobs, split, table.models, seed=seed)
        if unconsolidated and (table is None or not table.spread):
            raise BadInputError("--unconsolidated: --profiles has no speeds of types that end in _unconsolidated")
        workload = build_workload(jobs, table, pools, unconsolidated=unconsolidated)
        if usage is None:
            return workload
        return with_usages(workload, BUILT_IN if usage == "built-in" else read_usages(Path(usage)))


def profiles_of(name: str) -> ProfileTable:
    """The built-in table, or a file's."""
    return built_in_profiles() if name == "built-in" else read_profiles(Path(name))
