"""`kube-synergy solve`: the allocation of one policy for a problem in a file."""

import json
import time

import click

from synergy_cli.errors import BadInputError, bad_options
from synergy_cli.files import in_file, read_input
from synergy_cli.numbers import Seconds
from synergy_cli.text_table import text_table
from synergy_core.model.names import not_there
from synergy_core.model.snapshot import FieldError
from synergy_core.model.snapshot_format import SnapshotError
from synergy_core.policies.allocation import ALLOCATION_POLICIES, solve
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import AllocationMatrix, Problem, effective_throughput
from synergy_core.policies.allocation.problem_format import allocation_document, parse_problem
from synergy_core.policies.allocation.programme.point import SolverError


@click.command("solve")
@click.argument("problem", metavar="PROBLEM.json")
@click.option("--policy", required=True, help=f"What to optimise: {', '.join(sorted(ALLOCATION_POLICIES))}.")
@click.option("--agnostic", is_flag=True, help="Ignore that a job's speed differs between GPU types.")
@click.option(
    "--sharing/--no-sharing", default=True, show_default=True, help="Use the pairs of the problem, or ignore them."
)
@click.option("--time-limit", type=Seconds(min=0.0), help="Stop after this time and return the best solution so far.")
@click.option("--seed", default=0, show_default=True, help="Seed of policies that draw at random (gandiva).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def solve_command(
    problem: str, *, policy: str, agnostic: bool, sharing: bool, time_limit: float | None, seed: int, as_json: bool
) -> None:
    """Compute an allocation: the fraction of time that each job gets on each GPU type (- for standard input)."""
    try:
        what = parse_problem(read_input(problem, "PROBLEM.json"), seed=seed)
    except SnapshotError as error:
        raise BadInputError(in_file(problem, error)) from error
    if policy not in ALLOCATION_POLICIES:
        with bad_options():
            raise FieldError("policy", not_there(policy, sorted(ALLOCATION_POLICIES)))
    started = time.perf_counter()
    budget = None if time_limit is None else Budget(lambda: time_limit - (time.perf_counter() - started))
    try:
        found = solve(what, policy, aware=not agnostic, sharing=sharing, budget=budget)
    except FieldError as error:
        raise BadInputError(str(error)) from error
    except SolverError as error:
        raise BadInputError(
            f"jobs: the solver has no answer ({error}); weights, speeds or steps are too many orders of magnitude apart"
        ) from error
    seconds = time.perf_counter() - started
    if as_json:
        click.echo(json.dumps(allocation_document(what, found, seconds=seconds)))
    else:
        click.echo(_text(what, found, policy, seconds))


def _text(problem: Problem, found: AllocationMatrix, policy: str, seconds: float) -> str:
    speeds = effective_throughput(problem, found.x)
    header = ("job", *problem.columns, "steps/s")
    rows = [
        (job, *(f"{share:.4f}" for share in found.x[index]), f"{speeds[index]:.4g}")
        for index, job in enumerate(problem.jobs)
    ]
    first = len(problem.jobs)
    rows += [
        (f"{problem.jobs[a]} + {problem.jobs[b]}", *(f"{share:.4f}" for share in found.x[first + index]), "-")
        for index, (a, b) in enumerate(problem.pairs.tolist())
        if found.x[first + index].any()
    ]
    lines = [
        f"{policy}: {found.objective:.6g} ({found.normalisation})",
        f"{found.status}, {found.solver}, {seconds * 1000:.1f} ms" + (f": {found.note}" if found.note else ""),
        "",
        text_table(header, rows),
    ]
    return "\n".join(lines)
