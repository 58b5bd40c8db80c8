"""`kube-synergy trace`: write a trace that is derived from production."""

import csv
import io

import click

from synergy_cli.simulation.options import JobsPerHour, as_split, bad_input, profiles_of
from synergy_cli.simulation.output import check_writable, write_whole
from synergy_simulator.generator import PHILLY, SINGLE, Split, generate
from synergy_simulator.inputs.traces import TraceJob


@click.command("trace")
@click.argument("out", metavar="OUT.csv")
@click.option("--jobs", required=True, type=click.IntRange(1, 10_000_000), help="How many.")
@click.option("--load", type=JobsPerHour(), help="Jobs per hour; without, all arrive at 0.")
@click.option("--split", callback=as_split, default="20,70,10", show_default=True, metavar="I,L,S", help="In percent.")
@click.option(
    "--gpus",
    type=click.Choice(["single", "philly"]),
    default="single",
    show_default=True,
    help="One GPU each, or up to 16 as on Microsoft's Philly cluster.",
)
@click.option("--profiles", metavar="P.json", help="Whose models to draw from (default: the built-in ones).")
@click.option("--seed", default=0, show_default=True)
def trace_command(
    *, out: str, jobs: int, load: float | None, split: Split, gpus: str, profiles: str | None, seed: int
) -> None:
    """Write a trace as in Synergy's evaluation: durations, arrivals, GPU demands and models are drawn."""
    check_writable("OUT.csv", out)
    with bad_input():
        models = profiles_of(profiles or "built-in").models
        mix = PHILLY if gpus == "philly" else SINGLE
        made = generate(jobs, seed=seed, split=split, models=models, jobs_per_hour=load, gpu_mix=mix)
    write_whole(out, _native(made))


def _native(jobs: list[TraceJob]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("job_id", "arrival_s", "gpus", "model", "duration_s"))
    for job in jobs:
        writer.writerow((job.name, f"{job.arrival_s:.3f}", job.gpus, job.model, f"{job.duration_s:.3f}"))
    return text.getvalue()
