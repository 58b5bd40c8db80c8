"""`kube-synergy bench forecast`: processor seconds of `kube-synergy forecast`, as processes of their own.

The reference of the same run is one future of the same snapshot that is simulated with rounds of the usual length.
"""

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from synergy_cli.bench.workload import a_round_later, cluster
from synergy_cli.text_table import text_table
from synergy_core.collector import collector_paused
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import PastJob, Snapshot
from synergy_core.model.snapshot_format import snapshot_document
from synergy_core.plan import plan
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.present import Beginning
from synergy_simulator.workloads.workload import Workload

POLICIES = ("srtf", PlanConfig().policy)
_PROGRAM = "from synergy_cli.main import main; main()"
_FIRST_AIM_S, _AIM_S = 2.0, 30.0
_DAYS, _MEAN_S = 2, 20_000.0
"""How long the past is, and the mean seconds of its jobs: together they keep most of the GPUs busy."""


@dataclass(frozen=True, slots=True)
class Case:
    """One policy. Processor seconds of whole processes, except for the reference."""

    policy: str
    gpus: int
    jobs: int
    running: int
    draws: int
    first_s: float
    """The future without arrivals."""
    all_s: float
    """All draws."""
    usual_rounds_s: float
    """The reference: the future without arrivals, with rounds of the usual length."""
    ratio: float
    """How many times less a draw takes."""
    within_aims: bool


@click.command("forecast")
@click.option("--nodes", default=125, show_default=True, type=click.IntRange(1, 10_000), help="Of 8 GPUs each.")
@click.option("--jobs", default=1000, show_default=True, type=click.IntRange(2, 100_000), help="In the snapshot.")
@click.option("--draws", default=20, show_default=True, type=click.IntRange(1, 1000), help="Draws of arrivals.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random jobs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else there.")
def forecast_command(*, nodes: int, jobs: int, draws: int, seed: int, as_json: bool) -> None:
    """Forecasts of a cluster in mid-life, each in a process of its own."""
    cases = list(_cases(nodes, jobs, draws, seed))
    if as_json:
        click.echo(json.dumps({"benchmark": "forecast", "seed": seed, "cases": [asdict(case) for case in cases]}))
    else:
        click.echo(_text(cases))


def _cases(nodes: int, jobs: int, draws: int, seed: int) -> Iterator[Case]:
    for policy in POLICIES:
        start = cluster(nodes=nodes, jobs=jobs, seed=seed)
        later = a_round_later(start, plan(start, PlanConfig(policy=policy)), seed=seed + 1)
        snapshot = replace(later, config={"policy": policy})
        with TemporaryDirectory() as folder:
            first_s = _process_s(Path(folder, "without.json"), snapshot, draws)
            all_s = _process_s(Path(folder, "with.json"), replace(snapshot, history=_past(snapshot, seed)), draws)
        usual_s = _usual_rounds_s(snapshot)
        yield Case(
            policy=policy,
            gpus=nodes * 8,
            jobs=jobs,
            running=sum(job.running is not None for job in snapshot.jobs),
            draws=draws,
            first_s=first_s,
            all_s=all_s,
            usual_rounds_s=usual_s,
            ratio=usual_s * draws / max(1e-9, all_s - first_s),
            within_aims=first_s <= _FIRST_AIM_S and all_s <= _AIM_S,
        )


def _past(snapshot: Snapshot, seed: int) -> tuple[PastJob, ...]:
    """Twice as many jobs as there are now, over the last days."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    count, span_s = 2 * len(snapshot.jobs), _DAYS * 86_400.0
    rows = []
    for index in range(count):
        arrival_s = snapshot.now - span_s + span_s * index / count
        finish_s = arrival_s + rng.expovariate(1 / _MEAN_S)
        gpus = rng.choice(snapshot.jobs).gpus
        rows.append(PastJob(arrival_s=arrival_s, gpus=gpus, finish_s=finish_s if finish_s < snapshot.now else None))
    return tuple(rows)


def _process_s(file: Path, snapshot: Snapshot, draws: int) -> float:
    """Processor seconds of a process that forecasts the snapshot."""
    file.write_text(json.dumps(snapshot_document(snapshot)))
    command = [sys.executable, "-c", _PROGRAM, "forecast", str(file), "--draws", str(draws), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _usual_rounds_s(snapshot: Snapshot) -> float:
    options = options_of_snapshot(snapshot)
    beginning = Beginning(snapshot, options)
    with collector_paused():
        before = time.process_time()
        simulate(Workload((), beginning.cluster), options, present=beginning.present())
        return time.process_time() - before


def _text(cases: list[Case]) -> str:
    header = (
        "policy",
        "GPUs",
        "jobs",
        "running",
        "first answer s",
        "draws",
        "all s",
        "usual rounds s",
        "ratio",
        "aims",
    )
    rows = [
        (
            case.policy,
            str(case.gpus),
            str(case.jobs),
            str(case.running),
            f"{case.first_s:.2f}",
            str(case.draws),
            f"{case.all_s:.1f}",
            f"{case.usual_rounds_s:.1f}",
            f"{case.ratio:.1f}x",
            "yes" if case.within_aims else "no",
        )
        for case in cases
    ]
    note = f"Processor seconds. The aims are {_FIRST_AIM_S:g} s and {_AIM_S:g} s."
    return f"{text_table(header, rows)}\n\n{note}"
