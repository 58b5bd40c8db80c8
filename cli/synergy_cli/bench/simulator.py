"""`kube-synergy bench simulator`: simulated jobs per second and the cost of a round, beside the Synergy authors' own.

The references were measured once, by running the authors' simulator on traces of the same kind; they are not measured
in the same run, and say so. The traces are drawn, or with --data are the authors' own and the real Philly table.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.options import bad_input
from synergy_cli.text_table import text_table
from synergy_simulator.engine import Options, simulate
from synergy_simulator.generator import PHILLY, SINGLE, Split, generate, with_models
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.inputs.profiles import ProfileTable, read_profiles
from synergy_simulator.inputs.traces import TraceJob, read_trace
from synergy_simulator.metrics import metrics_of
from synergy_simulator.models import built_in_profiles
from synergy_simulator.workload import Workload, build_workload

SPLIT = Split(20, 70, 10)
PHILLY_WINDOW = slice(48_000, 56_000)
"""Jobs of the Philly table that ask for somewhat more than 512 GPUs on average."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A trace to simulate."""

    name: str
    nodes: int
    make: Callable[["Source"], list[TraceJob]]
    measure: tuple[int, int] | None
    policies: tuple[str, ...]
    theirs_cpu_s: dict[str, float]
    """Processor seconds of the authors' simulator by mechanism, under FIFO."""
    aim_cpu_s: float


@dataclass(frozen=True, slots=True)
class Source:
    """Where traces and profiles come from."""

    data: Path | None
    profiles: ProfileTable
    seed: int

    def drawn(self, jobs: int, load: float, *, multi: bool = False) -> list[TraceJob]:
        """A trace as in section 5.1."""
        mix = PHILLY if multi else SINGLE
        models = self.profiles.models
        return generate(jobs, seed=self.seed, split=SPLIT, models=models, jobs_per_hour=load, gpu_mix=mix)

    def table(self, name: str) -> Path | None:
        """A table of --data; None where it is not there."""
        path = None if self.data is None else self.data / name
        return path if path is not None and path.is_file() else None


def _s800(source: Source) -> list[TraceJob]:
    table = source.table("synergy/trace_s800.csv")
    return source.drawn(800, 12.0) if table is None else read_trace(table)


def _ss9(source: Source) -> list[TraceJob]:
    table = source.table("synergy/trace_ss9.csv")
    return source.drawn(6400, 9.0) if table is None else read_trace(table)


def _philly(source: Source) -> list[TraceJob]:
    table = source.table("philly/philly.csv")
    if table is None:
        return source.drawn(8000, 28.0, multi=True)
    return with_models(read_trace(table)[PHILLY_WINDOW], SPLIT, source.profiles.models, seed=source.seed)


KINDS = (
    Kind("s800", 16, _s800, None, ("fifo",), {"proportional": 45.5, "tune": 31.3}, 3.0),
    Kind("ss9", 16, _ss9, (4000, 5000), ("fifo",), {"proportional": 270.3, "tune": 283.8}, 30.0),
    Kind("philly", 64, _philly, None, ("srtf",), {}, 120.0),
)


@dataclass(frozen=True, slots=True)
class Result:
    """One simulation."""

    trace: str
    policy: str
    mechanism: str
    gpus: int
    jobs: int
    rounds: int
    plans: int
    cpu_s: float
    jobs_per_cpu_s: float
    ms_per_round: float
    ms_per_plan: float
    avg_jct_h: float
    theirs_cpu_s: float | None
    ratio: float | None
    """How many times less than theirs."""
    aim_cpu_s: float
    within_aim: bool


@click.command("simulator")
@click.option("--data", metavar="FOLDER", help="The papers' public tables; without, traces are drawn and built-in.")
@click.option("--quick", is_flag=True, help="The smallest trace only.")
@click.option("--seed", default=0, show_default=True, help="Seed of the drawn traces.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else there.")
def simulator_command(*, data: str | None, quick: bool, seed: int, as_json: bool) -> None:
    """Processor time of whole simulations."""
    if data is not None and not Path(data).is_dir():
        raise BadInputError(f"--data: there is no folder {data}")
    folder = None if data is None else Path(data)
    with bad_input():
        source = Source(folder, _profiles(folder), seed)
        results = []
        for kind in KINDS[:1] if quick else KINDS:
            workload = build_workload(kind.make(source), source.profiles, homogeneous(kind.nodes))
            for policy in kind.policies:
                for mechanism in ("proportional", "tune"):
                    if not as_json:
                        click.echo(f"{kind.name}, {policy} on {mechanism} ...", err=True)
                    results.append(_measure(kind, workload, policy, mechanism))
    if as_json:
        click.echo(json.dumps({"benchmark": "simulator", "seed": seed, "cases": [asdict(one) for one in results]}))
    else:
        click.echo(_text(results))


def _profiles(data: Path | None) -> ProfileTable:
    table = None if data is None else data / "synergy" / "throughputs.json"
    return read_profiles(table) if table is not None and table.is_file() else built_in_profiles()


def _measure(kind: Kind, workload: Workload, policy: str, mechanism: str) -> Result:
    ending = kind.measure is not None
    options = Options(policy=policy, mechanism=mechanism, measure=kind.measure, until_measured_done=ending)
    before = time.process_time()
    outcome = simulate(workload, options)
    cpu_s = time.process_time() - before
    metrics = metrics_of(outcome)
    theirs = kind.theirs_cpu_s.get(mechanism)
    return Result(
        trace=kind.name,
        policy=policy,
        mechanism=mechanism,
        gpus=workload.cluster.gpus,
        jobs=metrics.jobs,
        rounds=metrics.rounds,
        plans=len(outcome.plan_s),
        cpu_s=cpu_s,
        jobs_per_cpu_s=metrics.jobs / cpu_s,
        ms_per_round=1000 * cpu_s / metrics.rounds,
        ms_per_plan=metrics.plan_mean_ms,
        avg_jct_h=metrics.avg_jct_s / 3600,
        theirs_cpu_s=theirs,
        ratio=None if theirs is None else theirs / cpu_s,
        aim_cpu_s=kind.aim_cpu_s,
        within_aim=cpu_s <= kind.aim_cpu_s,
    )


def _text(results: list[Result]) -> str:
    header = ("trace", "policy", "mechanism", "GPUs", "jobs", "rounds", "plans", "cpu s", "jobs/cpu s", "ms/round")
    more = ("ms/plan", "average JCT, h", "authors', cpu s", "ratio", "aim, cpu s")
    rows = [
        (
            one.trace,
            one.policy,
            one.mechanism,
            f"{one.gpus}",
            f"{one.jobs}",
            f"{one.rounds}",
            f"{one.plans}",
            f"{one.cpu_s:.1f}",
            f"{one.jobs_per_cpu_s:.0f}",
            f"{one.ms_per_round:.2f}",
            f"{one.ms_per_plan:.2f}",
            f"{one.avg_jct_h:.2f}",
            "-" if one.theirs_cpu_s is None else f"{one.theirs_cpu_s:.1f}",
            "-" if one.ratio is None else f"{one.ratio:.1f}x",
            f"{one.aim_cpu_s:g}",
        )
        for one in results
    ]
    note = (
        "The authors' figures are of their own traces (s800, ss9), measured once on another day: give --data to match."
    )
    return f"{text_table((*header, *more), rows)}\n\n{note}"
