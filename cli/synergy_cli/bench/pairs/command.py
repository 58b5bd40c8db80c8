"""The command: one table, or one JSON object."""

import json
from dataclasses import asdict, dataclass, replace

import click

from synergy_cli.bench.pairs.rows import one_by_one_s, rows
from synergy_cli.bench.pairs.workload import PairsWorkload
from synergy_cli.bench.peak import peak_mb
from synergy_cli.errors import BadInputError
from synergy_cli.text_table import text_table
from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig

_SIZES = (100, 500, 1000, 1500)
_MOST_JOBS = 1500
"""Of more a plan makes no pairs."""
_CONFIG = PlanConfig(policy="max-min-fairness", colocation="gavel")
PREDICTORS = ("built-in", "corrected", "references")


@dataclass(frozen=True, slots=True)
class Case:
    """One predictor at one size. Processor seconds of the pairs of plans in a row, each after one change."""

    predictor: str
    jobs: int
    fractions: int
    """That were measured beside references."""
    rows: int
    """Pairs that the first plan found to help."""
    first_s: float
    again_s: float
    """Nothing has changed."""
    measurement_s: float
    """Two jobs were measured beside each other on one GPU type."""
    job_s: float
    """A job has come that was not measured."""
    measured_job_s: float | None
    """A job has come that was measured beside references, as all were; None where none was."""
    one_by_one_s: float
    """The reference: all pairs of the first plan one by one, from a sample."""
    ratio: float
    """How many times less the first plan takes."""
    peak_mb: int
    """Most memory that the process had by then."""


@click.command("pairs")
@click.option(
    "--jobs",
    "sizes",
    multiple=True,
    type=click.IntRange(2, _MOST_JOBS),
    help=f"Number of jobs; may be repeated. Default: {', '.join(map(str, _SIZES))}.",
)
@click.option(
    "--predictor",
    "predictors",
    multiple=True,
    type=click.Choice(PREDICTORS),
    help="What predicts; may be repeated. `built-in` without measurements, `corrected` by those beside references, or "
    "a fitted model with `references`. Default: all.",
)
@click.option("--types", default=3, show_default=True, type=click.IntRange(1, 8), help="GPU types.")
@click.option(
    "--references", default=8, show_default=True, type=click.IntRange(1, 100), help="Reference jobs on each GPU type."
)
@click.option(
    "--measured",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="Beside so many references each job was measured on each GPU type.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the random jobs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def pairs_command(
    *,
    sizes: tuple[int, ...],
    predictors: tuple[str, ...],
    types: int,
    references: int,
    measured: int,
    seed: int,
    as_json: bool,
) -> None:
    """Measure what pairs of jobs that may share a GPU take of a plan, for jobs that all differ.

    Seconds are those of all cores: OPENBLAS_NUM_THREADS=1 keeps linear algebra on one.
    """
    if measured > references:
        raise BadInputError(f"--measured: {measured} is more than there are; give at most {references} (--references)")
    cases = []
    for predictor in predictors or PREDICTORS:
        for jobs in sizes or _SIZES:
            if not as_json:
                click.echo(f"{predictor}, {jobs} jobs ...", err=True)
            beside = 0 if predictor == "built-in" else measured
            workload = PairsWorkload(types=types, references=references, measured=beside, seed=seed)
            cases.append(_measure(workload, predictor, jobs))
    if as_json:
        options = {"types": types, "references": references, "measured": measured, "seed": seed}
        click.echo(json.dumps({"benchmark": "pairs", **options, "cases": [asdict(case) for case in cases]}))
    else:
        click.echo(_text(cases))
        click.echo(
            f"processor seconds, GPU types: {types}; each job measured beside {measured} of {references} references"
        )


def _measure(workload: PairsWorkload, predictor: str, jobs: int) -> Case:
    config = replace(_CONFIG, predictors=workload.estimators()) if predictor == "references" else _CONFIG
    start = snapshot = workload.snapshot(jobs)
    memory = Memory()
    first = rows(snapshot, config, memory)
    again_s = rows(snapshot, config, memory).seconds
    snapshot = workload.with_measurement(snapshot)
    measurement_s = rows(snapshot, config, memory).seconds
    snapshot = workload.with_job(snapshot, measured=False)
    job_s = rows(snapshot, config, memory).seconds
    measured_job_s = None
    if workload.measured:
        measured_job_s = rows(workload.with_job(snapshot, measured=True), config, memory).seconds
    reference_s = one_by_one_s(start, config, seed=workload.seed)
    return Case(
        predictor=predictor,
        jobs=jobs,
        fractions=2 * sum(len(job.beside_references) for job in start.jobs),
        rows=len(first.pairs),
        first_s=first.seconds,
        again_s=again_s,
        measurement_s=measurement_s,
        job_s=job_s,
        measured_job_s=measured_job_s,
        one_by_one_s=reference_s,
        ratio=reference_s / first.seconds,
        peak_mb=peak_mb(),
    )


def _text(cases: list[Case]) -> str:
    header = (
        "predictor",
        "jobs",
        "fractions",
        "rows",
        "first plan s",
        "again s",
        "one measurement more s",
        "one job more s",
        "one measured job more s",
        "one by one s",
        "ratio",
        "peak MB",
    )
    return text_table(
        header,
        [
            (
                case.predictor,
                *(str(number) for number in (case.jobs, case.fractions, case.rows)),
                *(f"{s:.2f}" for s in (case.first_s, case.again_s, case.measurement_s, case.job_s)),
                "-" if case.measured_job_s is None else f"{case.measured_job_s:.2f}",
                f"{case.one_by_one_s:.1f}",
                f"{case.ratio:.0f}x",
                str(case.peak_mb),
            )
            for case in cases
        ],
    )
