"""`kube-synergy bench iterate`: what the library's iterator adds to a training step."""

import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, quantiles

import click

import synergy_job

_WARM_UP = 100


@click.command()
@click.option("--rate", default=1000, show_default=True, type=click.IntRange(1, 100_000), help="Steps per second.")
@click.option(
    "--steps", default=5000, show_default=True, type=click.IntRange(200), help="Number of steps of each loop."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def iterate_command(rate: int, steps: int, as_json: bool) -> None:
    """Measure the overhead of `iterate` per training step, compared with a bare loop over the same batches.

    The worker is alone and has no lease. A thread of its own would send the reports of a lease.
    """
    bare = _between_steps(_forever(), 1.0 / rate, steps)
    with tempfile.TemporaryDirectory() as folder, _worker(steps + 1, Path(folder)):
        batches = synergy_job.iterate([None] * 100, save=lambda step: None, load=lambda: None)
        library = _between_steps(batches, 1.0 / rate, steps)
    report = {
        "benchmark": "iterate",
        "steps": steps,
        "rate": rate,
        "bare_us": mean(bare),
        "iterate_us": mean(library),
        "added_us": mean(library) - mean(bare),
        "p99_us": quantiles(library, n=100)[98],
    }
    if as_json:
        click.echo(json.dumps(report))
    else:
        click.echo(
            f"iterate adds {report['added_us']:.1f} us to a step at {rate} steps/s "
            f"(mean of {steps}; 99 % of its calls take at most {report['p99_us']:.1f} us)"
        )


def _between_steps(batches: Iterable[None], step_s: float, steps: int) -> list[float]:
    """Microseconds from the end of each step to the beginning of the next, without the first ones."""
    found: list[float] = []
    ended: float | None = None
    for _ in batches:
        begun = time.perf_counter()
        if ended is not None:
            found.append(1e6 * (begun - ended))
        if len(found) == steps:
            break
        time.sleep(step_s)
        ended = time.perf_counter()
    return found[_WARM_UP:]


def _forever() -> Iterator[None]:
    while True:
        yield from [None] * 100


@contextmanager
def _worker(steps: int, folder: Path) -> Iterator[None]:
    """The environment of a worker, while the block runs."""
    ours: Mapping[str, str] = {
        "SYNERGY_JOB": "bench",
        "SYNERGY_NAMESPACE": "bench",
        "SYNERGY_RUN": "1",
        "SYNERGY_STEPS": str(steps),
        "SYNERGY_TERMINATION_LOG": str(folder / "termination"),
    }
    others = ("SYNERGY_PROFILE_SOCKET", "SYNERGY_EXTENDER_URL", "WORLD_SIZE", "RANK")
    before = {name: os.environ.pop(name, None) for name in (*ours, *others)}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
