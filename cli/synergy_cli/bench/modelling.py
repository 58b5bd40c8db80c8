"""`kube-synergy bench modelling`: one linear programme through cvxpy, and given to HiGHS directly.

The programme is max-min fairness (Gavel, section 4.1) of jobs that are all different. cvxpy gets it as three sparse
matrices, which is its fastest way: what it takes beyond the solver is its own work.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import click
import cvxpy
import highspy
import numpy as np
from scipy import sparse

from synergy_cli.bench.allocations import drawn_table, problem
from synergy_cli.text_table import text_table
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.policies.max_min_fairness import unit_throughput
from synergy_core.policies.allocation.problem import Problem

_SIZES = (128, 1024)


class Way(NamedTuple):
    """Seconds of one way, the median of the repeats. `modelling_s` is what the solver did not take."""

    jobs: int
    pairs: bool
    way: str
    seconds: float
    modelling_s: float | None
    """None for the project's own, which alternates between the two."""
    objective: float


@dataclass(frozen=True, slots=True, eq=False)
class Programme:
    """Maximise the level: `speed` @ y >= level, `time` @ y <= 1, `taken` @ y <= workers, y >= 0."""

    speed: Any
    """J x n, in units of the job's equal share."""
    time: Any
    taken: Any
    workers: Floats


@click.command("modelling")
@click.option(
    "--jobs",
    "sizes",
    multiple=True,
    type=click.IntRange(2),
    help=f"Number of jobs; may be repeated. Default: {_SIZES[0]} and {_SIZES[1]}.",
)
@click.option("--pairs", is_flag=True, help="Include all pairs of jobs that may share a worker.")
@click.option(
    "--repeats",
    default=5,
    show_default=True,
    type=click.IntRange(1),
    help="Number of solves. A figure is their median.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the jobs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def modelling_command(*, sizes: tuple[int, ...], pairs: bool, repeats: int, seed: int, as_json: bool) -> None:
    """Measure what cvxpy adds to the time of one linear programme, compared with calling HiGHS directly."""
    _ways(2, pairs=False, repeats=1, seed=seed)  # what is loaded once per process is not part of a solve
    found = [way for jobs in sizes or _SIZES for way in _ways(jobs, pairs=pairs, repeats=repeats, seed=seed)]
    if as_json:
        ways = [way._asdict() for way in found]
        click.echo(json.dumps({"benchmark": "modelling", "repeats": repeats, "seed": seed, "ways": ways}))
        return
    rows = [(str(way.jobs), way.way, _ms(way.seconds), _ms(way.modelling_s), f"{way.objective:.6f}") for way in found]
    click.echo(text_table(("jobs", "way", "ms", "of it modelling", "objective"), rows))


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"


def _ways(jobs: int, *, pairs: bool, repeats: int, seed: int) -> list[Way]:
    made = problem(drawn_table(seed), jobs, pairs=pairs, different=True, seed=seed)
    programme = programme_of(made)
    ways: dict[str, Callable[[], tuple[float, float | None]]] = {
        "cvxpy with HiGHS": lambda: by_cvxpy(programme),
        "HiGHS directly": lambda: by_highs(programme),
        "kube-synergy solve": lambda: (solve(made, "max-min-fairness").objective, None),
    }
    return [Way(jobs, pairs, name, *_median(way, repeats)) for name, way in ways.items()]


def _median(way: Callable[[], tuple[float, float | None]], repeats: int) -> tuple[float, float | None, float]:
    """Seconds, those of them that are modelling, and the objective."""
    found, parts, objective = [], [], 0.0
    for _ in range(repeats):
        began = time.perf_counter()
        objective, modelling = way()
        found.append(time.perf_counter() - began)
        parts += [] if modelling is None else [modelling]
    return median(found), median(parts) if parts else None, objective


def programme_of(made: Problem) -> Programme:
    """The matrices of a problem. Variable r * C + c is row r of X (jobs, then pairs) in column c."""
    jobs, columns, rows = len(made.jobs), len(made.columns), made.rows
    n = rows * columns
    alone = sparse.coo_array(
        (made.throughputs.ravel(), (np.repeat(np.arange(jobs), columns), np.arange(jobs * columns))), shape=(jobs, n)
    )
    of_pairs = np.arange(jobs * columns, n)
    speed, busy = alone, sparse.coo_array((np.ones(jobs * columns), alone.coords), shape=(jobs, n))
    for end in (0, 1):
        where = (np.repeat(made.pairs[:, end], columns), of_pairs)
        shared = made.pair_throughputs[:, :, end].ravel()
        speed = speed + sparse.coo_array((shared, where), shape=(jobs, n))
        busy = busy + sparse.coo_array((np.ones(len(of_pairs)), where), shape=(jobs, n))
    scale = np.repeat(made.row_scale(), columns)
    taken = sparse.coo_array((scale, (np.tile(made.column_type, rows), np.arange(n))), shape=(len(made.types), n))
    scaled = sparse.diags_array(1.0 / unit_throughput(made)) @ speed
    return Programme(sparse.csr_array(scaled), sparse.csr_array(busy), sparse.csr_array(taken), made.workers)


def by_cvxpy(programme: Programme) -> tuple[float, float]:
    """The optimum, and the seconds that were not the solver's."""
    began = time.perf_counter()
    y = cvxpy.Variable(programme.speed.shape[1], nonneg=True)
    level = cvxpy.Variable()
    limits = [programme.speed @ y >= level, programme.time @ y <= 1, programme.taken @ y <= programme.workers]
    stated = cvxpy.Problem(cvxpy.Maximize(level), limits)
    optimum = float(stated.solve(solver=cvxpy.HIGHS, threads=1))
    return optimum, time.perf_counter() - began - float(stated.solver_stats.solve_time)


def by_highs(programme: Programme) -> tuple[float, float]:
    """The optimum, and the seconds that were not the solver's."""
    began = time.perf_counter()
    jobs, n = programme.speed.shape
    level = sparse.csr_array(-np.ones((jobs, 1)))
    rows = sparse.csc_array(
        sparse.block_array([[programme.speed, level], [programme.time, None], [programme.taken, None]])
    )
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n + 1, rows.shape[0]
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.concatenate([np.zeros(n), [1.0]])
    lp.col_lower_ = np.concatenate([np.zeros(n), [-highspy.kHighsInf]])
    lp.col_upper_ = np.full(n + 1, highspy.kHighsInf)
    lp.row_lower_ = np.concatenate([np.zeros(jobs), np.full(rows.shape[0] - jobs, -highspy.kHighsInf)])
    lp.row_upper_ = np.concatenate([np.full(jobs, highspy.kHighsInf), np.ones(jobs), programme.workers])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.passModel(lp)
    modelling = time.perf_counter() - began
    highs.run()
    return float(highs.getInfo().objective_function_value), modelling
