"""`kube-synergy bench solver`: seconds of one allocation for each policy and size, beside the Gavel authors' figures.

Solving is single-threaded and does nothing but compute: its processor time is about the time it takes on an idle
machine. The aims are for that, not for the seconds that went by, which are given beside it. Every solve is cold: of
other jobs, with nothing kept of the solve before.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from synergy_cli.bench.allocations import Table, drawn_table, problem, read_table
from synergy_cli.bench.peak import peak_mb
from synergy_cli.errors import BadInputError
from synergy_cli.text_table import text_table
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import Problem

SIZES = (32, 128, 512, 1024, 2048, 4096)
WITH_PAIRS = (32, 128, 512, 1024, 2048)

POLICIES = (
    "max-min-fairness",
    "makespan",
    "min-cost-slo",
    "finish-time-fairness",
    "max-min-fairness-water-filling",
    "hierarchical",
)
ON_REQUEST = ("hierarchical-fifo",)
"""Not among the default ones, as it takes minutes: tenants that serve their jobs in the order of arrival."""

_FIFO = "-fifo"
_LEVELS = {32: 0.12, 128: 0.29}
THEIRS: dict[tuple[str, bool], dict[int, float]] = {
    ("max-min-fairness", False): {32: 0.06, 128: 0.013, 512: 0.03, 1024: 0.03, 2048: 0.05},
    ("makespan", False): {32: 0.09, 128: 0.045, 512: 0.08, 1024: 0.11, 2048: 0.44},
    ("min-cost-slo", False): {32: 0.08, 128: 0.02, 512: 0.05, 1024: 0.12, 2048: 0.22},
    ("finish-time-fairness", False): {32: 0.14, 128: 0.34, 512: 1.17, 1024: 2.64, 2048: 6.7},
    ("hierarchical", False): _LEVELS,
    ("max-min-fairness", True): {32: 0.04, 128: 0.45},
    ("min-cost-slo", True): {32: 0.09, 128: 2.0, 512: 98.0},
    ("finish-time-fairness", True): {32: 0.18},
    ("makespan", True): {32: 1.1, 128: 17.0},
    ("max-min-fairness-water-filling", True): {32: 3.3, 128: 120.0},
}
"""Seconds per solve of the authors' code (ECOS, two shared cores, November 2026) by policy, pairs and jobs, where it
ended with an accurate answer; theirs for tenants is water filling over five of them."""

AIMS: dict[tuple[str, bool], dict[int, float]] = {
    ("max-min-fairness", False): {2048: 0.05},
    ("finish-time-fairness", False): {2048: 0.5},
    ("makespan", False): {2048: 0.2},
    ("min-cost-slo", False): {2048: 0.1},
    ("max-min-fairness-water-filling", False): {2048: 2.0},
    ("hierarchical", False): {2048: 2.0},
    ("hierarchical-fifo", False): {2048: 2.0},
    ("max-min-fairness", True): {512: 2.0, 2048: 30.0},
    ("min-cost-slo", True): {512: 3.0},
    ("finish-time-fairness", True): {512: 5.0},
    ("makespan", True): {512: 5.0},
    ("max-min-fairness-water-filling", True): {512: 20.0},
}


@dataclass(frozen=True, slots=True)
class Case:
    """One policy at one size: medians over the repeats, each of which has jobs of its own."""

    policy: str
    pairs: bool
    different: bool
    """Whether no two jobs are alike; else they are of the table's 26 kinds, and those of a kind are merged."""
    jobs: int
    status: str
    objective: float
    """Of the first repeat."""
    wall_s: float
    cpu_s: float
    """Processor time; the aim is for this."""
    peak_mb: int
    """Most memory that the process had by then."""
    authors_s: float | None
    """Seconds that went by, on an idle machine, with jobs of the table's kinds."""
    aim_cpu_s: float | None
    within_aim: bool | None


@click.command("solver")
@click.option("--jobs", "sizes", multiple=True, type=click.IntRange(2), help="Number of jobs; may be repeated.")
@click.option(
    "--policy", "policies", multiple=True, help=f"Policies; default: {', '.join(POLICIES)}; also {ON_REQUEST[0]}."
)
@click.option(
    "--pairs/--no-pairs", "pairs", default=None, help="Measure with or without space sharing only. Default: both."
)
@click.option(
    "--different/--kinds",
    "different",
    default=None,
    help="Jobs that are all different, or jobs of 26 configurations. Default: both.",
)
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    help="The authors' simulation_throughputs.json. Default: random throughputs.",
)
@click.option(
    "--repeats",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    help="Number of solves. A figure is their median.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of jobs and table.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def solver_command(
    *,
    sizes: tuple[int, ...],
    policies: tuple[str, ...],
    pairs: bool | None,
    different: bool | None,
    table: Path | None,
    repeats: int,
    seed: int,
    as_json: bool,
) -> None:
    """Measure how long allocations take for growing numbers of random jobs (Gavel, figure 14)."""
    for policy in policies:
        if policy not in POLICIES + ON_REQUEST:
            raise BadInputError(f"--policy: {policy!r} is not measured; choose of {', '.join(POLICIES + ON_REQUEST)}")
    kinds = _table(table, seed)
    solve(problem(kinds, 8), "makespan")  # what is loaded once per process is not part of a solve
    cases = []
    for policy, row, jobs in _wanted(sizes, policies or POLICIES, pairs, different):
        if not as_json:
            click.echo(f"{policy}, {jobs} {row.words} ...", err=True)
        cases.append(_measure(kinds, policy, jobs, row, repeats=repeats, seed=seed))
    if as_json:
        report = {
            "benchmark": "solver",
            "seed": seed,
            "repeats": repeats,
            "table": "drawn" if table is None else "given",
        }
        click.echo(json.dumps({**report, "solver": "HIGHS", "cases": [asdict(case) for case in cases]}))
    else:
        click.echo(_text(cases))


def _table(path: Path | None, seed: int) -> Table:
    if path is None:
        return drawn_table(seed)
    try:
        return read_table(path)
    except (OSError, ValueError, KeyError, SyntaxError) as error:
        raise BadInputError(
            f"--table: cannot use {path}: {error}; give the authors' simulation_throughputs.json"
        ) from error


@dataclass(frozen=True, slots=True)
class _Row:
    """What jobs are measured with."""

    pairs: bool
    different: bool

    @property
    def words(self) -> str:
        return f"{'different ' if self.different else ''}jobs{' with pairs' if self.pairs else ''}"


def _wanted(
    sizes: tuple[int, ...], policies: tuple[str, ...], pairs: bool | None, different: bool | None
) -> Iterator[tuple[str, _Row, int]]:
    both = (False, True)
    for row in [_Row(p, d) for p in both if pairs in (None, p) for d in both if different in (None, d)]:
        for jobs in sizes or (WITH_PAIRS if row.pairs else SIZES):
            for policy in policies:
                large = row.pairs and jobs > 512
                aimed_at = jobs in AIMS.get((policy, row.pairs), {}) and not row.different
                if sizes or not large or aimed_at:
                    yield policy, row, jobs


def _measure(kinds: Table, policy: str, jobs: int, row: _Row, *, repeats: int, seed: int) -> Case:
    wall, cpu, status, objective = [], [], "", 0.0
    for repeat in range(repeats):
        made = _problem(kinds, policy, jobs, row, seed=seed + repeat)
        started, worked = time.perf_counter(), time.process_time()
        found = solve(made, policy.removesuffix(_FIFO))
        cpu.append(time.process_time() - worked)
        wall.append(time.perf_counter() - started)
        if repeat == 0:
            status, objective = found.status, found.objective
    aim, cpu_s = AIMS.get((policy, row.pairs), {}).get(jobs), float(np.median(cpu))
    return Case(
        policy=policy,
        pairs=row.pairs,
        different=row.different,
        jobs=jobs,
        status=status,
        objective=objective,
        wall_s=float(np.median(wall)),
        cpu_s=cpu_s,
        peak_mb=peak_mb(),
        authors_s=None if row.different else THEIRS.get((policy, row.pairs), {}).get(jobs),
        aim_cpu_s=aim,
        within_aim=None if aim is None else cpu_s <= aim,
    )


def _problem(kinds: Table, policy: str, jobs: int, row: _Row, *, seed: int) -> Problem:
    tenants, fifo = 5 if policy.startswith("hierarchical") else 0, policy.endswith(_FIFO)
    return problem(kinds, jobs, pairs=row.pairs, tenants=tenants, fifo=fifo, different=row.different, seed=seed)


def _text(cases: list[Case]) -> str:
    header = (
        "policy",
        "pairs",
        "jobs",
        "alike",
        "status",
        "wall s",
        "cpu s",
        "peak MB",
        "theirs wall s",
        "aim cpu s",
        "within",
    )
    rows = [
        (
            case.policy,
            "yes" if case.pairs else "no",
            str(case.jobs),
            "none" if case.different else "26 kinds",
            case.status,
            *(f"{value:.3f}" for value in (case.wall_s, case.cpu_s)),
            str(case.peak_mb),
            "-" if case.authors_s is None else f"{case.authors_s:g}",
            "-" if case.aim_cpu_s is None else f"{case.aim_cpu_s:g}",
            {None: "-", True: "yes", False: "no"}[case.within_aim],
        )
        for case in cases
    ]
    return text_table(header, rows)
