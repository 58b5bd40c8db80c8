"""`kube-synergy trace`: write a trace that is derived from production."""

import csv
import io
from typing import Any

import click
from click.core import ParameterSource

from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.simulation.inputs import bad_input
from synergy_cli.simulation.output import check_writable, write_whole
from synergy_cli.simulation.values import JobsPerHour, as_split
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.study.load import profiles_of
from synergy_simulator.workloads.generator import PHILLY, SINGLE, Split, generate
from synergy_simulator.workloads.tiresias_mix import GPUS, production_like, scaled_down

TESTBED_JOBS = sum(GPUS.values())


@click.command("trace")
@click.argument("out", metavar="OUT.csv")
@click.option("--jobs", required=True, type=click.IntRange(1, 10_000_000), help="Number of jobs.")
@click.option("--load", type=JobsPerHour(), help="Jobs per hour. Without it, all jobs arrive at second 0.")
@click.option(
    "--mix",
    type=Choice(["synergy", "tiresias-testbed", "tiresias-production"]),
    default="synergy",
    show_default=True,
    help="Evaluation whose distributions to draw from. Those of Tiresias need --load.",
)
@click.option(
    "--split",
    callback=as_split,
    default="20,70,10",
    show_default=True,
    metavar="I,L,S",
    help="Percentages of image, language and speech models.",
)
@click.option(
    "--gpus",
    type=Choice(["single", "philly"]),
    default="single",
    show_default=True,
    help="One GPU each, or up to 16 as on Microsoft's Philly cluster.",
)
@click.option("--profiles", metavar="P.json", help="Profiles that name the models to draw from (default: built-in).")
@click.option("--seed", default=0, show_default=True)
def trace_command(*, out: str, jobs: int, load: float | None, mix: str, seed: int, **of_synergy: Any) -> None:
    """Generate a trace like those of Synergy's or Tiresias' evaluation: durations, arrivals, GPU demands and models."""
    check_writable("OUT.csv", out)
    if mix == "synergy":
        made = _as_in_synergy(jobs, load, seed, **of_synergy)
    else:
        made = _as_in_tiresias(mix, jobs, load, seed)
    write_whole(out, _native(made))


def _as_in_synergy(
    jobs: int, load: float | None, seed: int, *, split: Split, gpus: str, profiles: str | None
) -> list[TraceJob]:
    with bad_input():
        models = profiles_of(profiles or "built-in").models
        mix = PHILLY if gpus == "philly" else SINGLE
        return generate(jobs, seed=seed, split=split, models=models, jobs_per_hour=load, gpu_mix=mix)


def _as_in_tiresias(mix: str, jobs: int, load: float | None, seed: int) -> list[TraceJob]:
    context = click.get_current_context()
    for option in ("split", "gpus", "profiles"):
        if context.get_parameter_source(option) is not ParameterSource.DEFAULT:
            raise BadInputError(f"--{option}: {mix} has GPU counts and models of its own; leave it out")
    if load is None:
        raise BadInputError(f"--load: jobs of {mix} arrive one after the other; give jobs per hour (the testbed: 120)")
    if mix == "tiresias-production":
        return production_like(jobs, seed=seed, jobs_per_hour=load)
    if jobs > TESTBED_JOBS:
        raise BadInputError(f"--jobs: {mix} has {TESTBED_JOBS} jobs; ask for as many at the most")
    return scaled_down(seed=seed, jobs=jobs, jobs_per_hour=load)


_COLUMNS = ("job_id", "arrival_s", "gpus", "model", "duration_s")
_SENSITIVITY = ("skew", "model_bytes", "spread_speed", "checkpoint_bytes")
"""Written where the models are known to have them."""


def _native(jobs: list[TraceJob]) -> str:
    further = _SENSITIVITY if any(job.model_bytes for job in jobs) else ()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_COLUMNS, *further))
    for job in jobs:
        own = ["" if value is None else value for value in (getattr(job, column) for column in further)]
        writer.writerow((job.name, f"{job.arrival_s:.3f}", job.gpus, job.model, f"{job.duration_s:.3f}", *own))
    return text.getvalue()
