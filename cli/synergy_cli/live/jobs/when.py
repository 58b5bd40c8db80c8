"""`kubectl synergy when`: when a job starts and ends."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

import click

from synergy_api.timestamps import parse_time
from synergy_cli.live.access import Cluster, Where, ask
from synergy_cli.live.future import NodesHiddenError, Present, look
from synergy_cli.live.options import cluster_options, job_argument, output_option
from synergy_cli.live.output import heading, note, write_data, write_table
from synergy_cli.planning.forecast import draw_options, field_errors
from synergy_core.collector import collector_paused
from synergy_simulator.forecast.forecast import Forecaster, JobForecast
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.quantiles import Quantiles
from synergy_view.seen import SeenJob
from synergy_view.words import ahead, count

UNKNOWN = {
    "NoSteps": "the job does not say how many steps it has",
    "NotProfiled": "its speed is not known: it has not been measured, nor has a job of the same program",
    "NeverFits": "no GPU type that it may use has as many free GPUs, whoever leaves",
    "Finished": "it has ended",
    "Suspended": "spec.suspend holds it",
    "NotPlanned": "no plan considers it now: kubectl synergy why",
    "Hidden": "you may not list nodes, and the cluster has told no estimate of its own",
}
"""Why nothing is known, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The 10th, 50th and 90th percentile, seconds since the epoch; None: beyond the horizon or not known."""

    p10: float | None
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The answer. `by` says who has made the forecast: this command, or the cluster's extender."""

    job: str
    state: str
    now: float
    unknown: str | None = None
    by: str = "command"
    draws: int = 0
    """Draws of further jobs; 0: no job has come from which to draw."""
    start: Range | None = None
    finish: Range | None = None
    start_without_arrivals: float | None = None
    finish_without_arrivals: float | None = None


@click.command("when")
@job_argument
@draw_options
@cluster_options()
@output_option()
def when_command(*, job: str, draws: int, seed: int, horizon_s: float | None, where: Where, output: str) -> None:
    """When a job starts and ends: likely, at best and at worst, with the jobs that may come and without them."""

    async def question(cluster: Cluster) -> tuple[SeenJob, Present | None]:
        asked = await cluster.job(job)
        try:
            return asked, await look(cluster)
        except NodesHiddenError:
            return asked, None

    asked, present = ask(where, question)
    if present is None:
        answer = _as_told(asked)
    else:
        with field_errors(), collector_paused():
            answer = when(asked, present, draws=draws, seed=seed, horizon_s=horizon_s)
    if output in ("json", "yaml"):
        write_data(answer, output)
    else:
        _tell(answer, wide=output == "wide")
    for text in present.notes if present is not None else ():
        note(text)


def when(asked: SeenJob, present: Present, *, draws: int, seed: int, horizon_s: float | None) -> When:
    """Simulate the cluster from now on. Raises FieldError where the policy cannot be simulated."""
    snapshot, name = present.snapshot, asked.full_name
    if all(job.name != name for job in snapshot.jobs):
        reason = "Finished" if asked.finished else "Suspended" if asked.spec.suspend else "NotPlanned"
        return When(job=name, state=asked.phase, now=present.now, unknown=reason)
    found = Forecaster(snapshot, options_of_snapshot(snapshot), horizon_s=horizon_s).forecast(draws, seed)
    one = next(job for job in found.jobs if job.job == name)
    return _answer(one, present.now, found.draws)


def _answer(one: JobForecast, now: float, draws: int) -> When:
    if one.unknown is not None:
        return When(job=one.job, state=one.state, now=now, unknown=one.unknown, draws=draws)
    return When(
        job=one.job,
        state=one.state,
        now=now,
        draws=draws,
        start=_range(one.start),
        finish=_range(one.finish),
        start_without_arrivals=_finite(one.start_without_arrivals_s),
        finish_without_arrivals=_finite(one.finish_without_arrivals_s),
    )


def _as_told(asked: SeenJob) -> When:
    """What the extender has told of the job: users who may not see nodes get this."""
    now, entry = time.time(), asked.status.queue
    if entry is None or entry.estimated_start is None:
        reason = "Finished" if asked.finished else "Suspended" if asked.spec.suspend else "Hidden"
        return When(job=asked.full_name, state=asked.phase, now=now, unknown=reason, by="extender")
    by = entry.estimated_start_by
    start = Range(p10=None, p50=parse_time(entry.estimated_start), p90=None if by is None else parse_time(by))
    return When(job=asked.full_name, state="waiting", now=now, by="extender", start=start)


def _range(one: Quantiles) -> Range:
    return Range(p10=_finite(one.p10), p50=_finite(one.p50), p90=_finite(one.by))


def _finite(moment: float) -> float | None:
    return moment if moment < inf else None


def _tell(answer: When, *, wide: bool) -> None:
    heading(f"{answer.job}: {answer.state.lower()}")
    if answer.unknown is not None:
        click.echo(f"  not known: {answer.unknown}: {UNKNOWN[answer.unknown]}")
        return
    if answer.by == "extender":
        assert answer.start is not None
        click.echo(f"  starts {_ahead(answer.start.p50, answer.now)}, by the extender's newest estimate", nl=False)
        click.echo(f"; in nine of ten cases {_ahead(answer.start.p90, answer.now)}" if answer.start.p90 else "")
        click.echo("  you may not list nodes, so nothing more is known")
        return
    rows = [
        _cells("start", answer.start, answer.start_without_arrivals, answer.now, wide=wide),
        _cells("end", answer.finish, answer.finish_without_arrivals, answer.now, wide=wide),
    ]
    header = ["", "10 %", "50 %", "90 %", "IF NO JOB COMES"]
    write_table([*header, *(["50 % AT", "90 % AT"] if wide else [])], rows, nothing="")
    by = f"{count(answer.draws, 'draw')} of further jobs" if answer.draws else "no further jobs: none has come yet"
    click.echo(by)


def _cells(name: str, one: Range | None, alone: float | None, now: float, *, wide: bool) -> list[str]:
    assert one is not None
    cells = [name, *(_ahead(moment, now) for moment in (one.p10, one.p50, one.p90, alone))]
    return [*cells, _clock(one.p50), _clock(one.p90)] if wide else cells


def _ahead(moment: float | None, now: float) -> str:
    if moment is None:
        return "beyond"
    return ahead(moment - now)


def _clock(moment: float | None) -> str:
    return "-" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%MZ")
