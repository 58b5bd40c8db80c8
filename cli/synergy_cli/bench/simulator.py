"""`kube-synergy bench simulator`: simulated jobs per second and the cost of a round, beside the papers' simulators.

The references were measured once, by running the Synergy and Gavel authors' simulators on traces of the same kind; they
are not measured in the same run, and say so. The traces are drawn, or with --data are the authors' own and the real
Philly table.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.inputs import bad_input
from synergy_cli.text_table import text_table
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.inputs.profiles import ProfileTable, read_profiles
from synergy_simulator.inputs.traces import TraceJob, read_trace
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.reproductions.gavel.common import cluster as gavel_cluster
from synergy_simulator.workloads.gavel_mix import built_in_speeds
from synergy_simulator.workloads.gavel_mix import drawn as gavel_drawn
from synergy_simulator.workloads.generator import PHILLY, SINGLE, Split, generate, with_models
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload

SPLIT = Split(20, 70, 10)
PHILLY_WINDOW = slice(48_000, 56_000)
"""Jobs of the Philly table that ask for somewhat more than 512 GPUs on average."""


@dataclass(frozen=True, slots=True)
class Case:
    """A way to simulate a trace."""

    policy: str
    mechanism: str
    aim_s: float
    """Processor seconds."""
    theirs_s: float | None = None
    """Seconds of the authors' simulator."""
    aware: bool = True


@dataclass(frozen=True, slots=True)
class BenchTrace:
    """A trace to simulate."""

    name: str
    make: Callable[["Source"], Workload]
    measure: tuple[int, int] | None
    cases: tuple[Case, ...]
    round_s: float = 300.0


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

    def on_nodes(self, nodes: int, trace: list[TraceJob]) -> Workload:
        """A trace on so many servers of 8 GPUs."""
        return build_workload(trace, self.profiles, homogeneous(nodes))

    def table(self, name: str) -> Path | None:
        """A table of --data; None where it is not there."""
        path = None if self.data is None else self.data / name
        return path if path is not None and path.is_file() else None


def _s800(source: Source) -> Workload:
    table = source.table("synergy/trace_s800.csv")
    return source.on_nodes(16, source.drawn(800, 12.0) if table is None else read_trace(table))


def _ss9(source: Source) -> Workload:
    table = source.table("synergy/trace_ss9.csv")
    return source.on_nodes(16, source.drawn(6400, 9.0) if table is None else read_trace(table))


def _philly(source: Source) -> Workload:
    table = source.table("philly/philly.csv")
    if table is None:
        return source.on_nodes(64, source.drawn(8000, 28.0, multi=True))
    trace = with_models(read_trace(table)[PHILLY_WINDOW], SPLIT, source.profiles.models, seed=source.seed)
    return source.on_nodes(64, trace)


def _gavel(source: Source) -> Workload:
    """The authors' 1,200 jobs of one GPU at 1.8 jobs/h, with their speeds, or as many drawn ones."""
    table, speeds = source.table(f"gavel/{_GAVEL_TRACE}"), source.table("gavel/simulation_throughputs.json")
    there = gavel_cluster(12)
    if table is None or speeds is None:
        own = built_in_speeds()
        return build_workload(gavel_drawn(1200, own, seed=source.seed, jobs_per_hour=1.8), own, there)
    return build_workload(read_trace(table), read_profiles(speeds), there)


_GAVEL_TRACE = "cont_single_lam2000_s0.csv"
_GAVEL_THEIRS = {
    ("max-min-fairness", True): 17.0,
    ("max-min-fairness", False): 26.0,
    ("finish-time-fairness", True): 133.0,
    ("gavel-fifo", True): 14.0,
    ("makespan", True): 216.0,
    ("allox", True): 17.0,
}
"""Wall seconds on two shared cores, by policy and whether it sees the GPU types. The aim is a tenth."""

KINDS = (
    BenchTrace("s800", _s800, None, (Case("fifo", "proportional", 3.0, 45.5), Case("fifo", "tune", 3.0, 31.3))),
    BenchTrace(
        "ss9", _ss9, (4000, 5000), (Case("fifo", "proportional", 30.0, 270.3), Case("fifo", "tune", 30.0, 283.8))
    ),
    BenchTrace("philly", _philly, None, (Case("srtf", "proportional", 120.0), Case("srtf", "tune", 120.0))),
    BenchTrace(
        "gavel",
        _gavel,
        (100, 400),
        tuple(
            Case(policy, "proportional", theirs_s / 10.0, theirs_s, aware)
            for (policy, aware), theirs_s in _GAVEL_THEIRS.items()
        ),
        360.0,
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """One simulation."""

    trace: str
    policy: str
    aware: bool
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
    theirs_s: float | None
    ratio: float | None
    """How many times less than theirs."""
    aim_s: float
    within_aim: bool


@click.command("simulator")
@click.option(
    "--data",
    metavar="FOLDER",
    help="Folder with the papers' public tables. Without it, traces are generated or built in.",
)
@click.option("--quick", is_flag=True, help="Simulate the smallest trace only.")
@click.option("--seed", default=0, show_default=True, help="Seed of the generated traces.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def simulator_command(*, data: str | None, quick: bool, seed: int, as_json: bool) -> None:
    """Measure the processor time of whole simulations."""
    if data is not None and not Path(data).is_dir():
        raise BadInputError(f"--data: there is no folder {data}")
    folder = None if data is None else Path(data)
    with bad_input():
        source = Source(folder, _profiles(folder), seed)
        results = []
        for kind in KINDS[:1] if quick else KINDS:
            workload = kind.make(source)
            for case in kind.cases:
                if not as_json:
                    click.echo(f"{kind.name}, {_policy(case)} on {case.mechanism} ...", err=True)
                results.append(_measure(kind, workload, case))
    if as_json:
        click.echo(json.dumps({"benchmark": "simulator", "seed": seed, "cases": [asdict(one) for one in results]}))
    else:
        click.echo(_text(results))


def _profiles(data: Path | None) -> ProfileTable:
    table = None if data is None else data / "synergy" / "throughputs.json"
    return read_profiles(table) if table is not None and table.is_file() else built_in_profiles()


def _policy(case: "Case | Result") -> str:
    return case.policy if case.aware else f"{case.policy}, agnostic"


def _measure(kind: BenchTrace, workload: Workload, case: Case) -> Result:
    options = Options.of(
        policy=case.policy,
        aware=case.aware,
        mechanism=case.mechanism,
        round_s=kind.round_s,
        measure=kind.measure,
        until_measured_done=kind.measure is not None,
    )
    before = time.process_time()
    outcome = simulate(workload, options)
    cpu_s = time.process_time() - before
    metrics = metrics_of(outcome)
    return Result(
        trace=kind.name,
        policy=case.policy,
        aware=case.aware,
        mechanism=case.mechanism,
        gpus=workload.cluster.gpus,
        jobs=metrics.jobs,
        rounds=metrics.rounds,
        plans=len(outcome.plan_s),
        cpu_s=cpu_s,
        jobs_per_cpu_s=metrics.jobs / cpu_s,
        ms_per_round=1000 * cpu_s / metrics.rounds,
        ms_per_plan=metrics.plan_mean_ms,
        avg_jct_h=metrics.avg_jct_s / 3600,
        theirs_s=case.theirs_s,
        ratio=None if case.theirs_s is None else case.theirs_s / cpu_s,
        aim_s=case.aim_s,
        within_aim=cpu_s <= case.aim_s,
    )


def _text(results: list[Result]) -> str:
    header = ("trace", "policy", "mechanism", "GPUs", "jobs", "rounds", "plans", "cpu s", "jobs/cpu s", "ms/round")
    more = ("ms/plan", "average JCT, h", "authors', s", "ratio", "aim, cpu s")
    rows = [
        (
            one.trace,
            _policy(one),
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
            "-" if one.theirs_s is None else f"{one.theirs_s:.1f}",
            "-" if one.ratio is None else f"{one.ratio:.1f}x",
            f"{one.aim_s:g}",
        )
        for one in results
    ]
    note = (
        "The authors' figures are of their own traces (s800, ss9: processor seconds; gavel: wall seconds), measured "
        "once, on another day: give --data to match."
    )
    return f"{text_table((*header, *more), rows)}\n\n{note}"
