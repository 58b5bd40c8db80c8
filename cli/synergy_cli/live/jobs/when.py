"""`kubectl synergy when`: when a job starts and ends."""

from datetime import UTC, datetime

import click

from kube_synergy.forecast import UNKNOWN, Range, When
from kube_synergy.live.cluster import Cluster
from kube_synergy.live.present import Present
from kube_synergy.live.when import as_told, job_and_cluster, when
from synergy_cli.live.access import Where, ask
from synergy_cli.live.options import cluster_options, job_argument, output_option
from synergy_cli.live.output import heading, note, write_data, write_line, write_table
from synergy_cli.planning.futures import draw_options, field_errors
from synergy_core.collector import collector_paused
from synergy_view.seen import SeenJob
from synergy_view.words import ahead, count


@click.command("when")
@job_argument
@draw_options
@cluster_options()
@output_option()
def when_command(*, job: str, draws: int, seed: int, horizon_s: float | None, where: Where, output: str) -> None:
    """Forecast when a job starts and ends: likely, at best and at worst, with and without future arrivals."""

    async def question(cluster: Cluster) -> tuple[SeenJob, Present | None]:
        return await job_and_cluster(cluster, job)

    asked, present = ask(where, question)
    if present is None:
        answer = as_told(asked)
    else:
        with field_errors(), collector_paused():
            answer = when(asked, present, draws=draws, seed=seed, horizon_s=horizon_s)
    if output in ("json", "yaml"):
        write_data(answer, output)
    else:
        where_told = f"the job is in cluster {asked.cluster}" if asked.is_elsewhere else "you may not list nodes"
        _tell(answer, where_told, wide=output == "wide")
    for text in present.notes if present is not None else ():
        note(text)


def _tell(answer: When, limits: str, *, wide: bool) -> None:
    heading(f"{answer.job}: {answer.state.lower()}")
    if answer.unknown is not None:
        write_line(f"  not known: {answer.unknown}: {UNKNOWN[answer.unknown]}")
        return
    if answer.by == "extender":
        assert answer.start is not None
        by = f"; in nine of ten cases {_ahead(answer.start.p90, answer.now)}" if answer.start.p90 else ""
        write_line(f"  starts {_ahead(answer.start.p50, answer.now)}, by the extender's newest estimate{by}")
        write_line(f"  {limits}, so nothing more is known")
        return
    rows = [
        _cells("start", answer.start, answer.start_without_arrivals, answer.now, wide=wide),
        _cells("end", answer.finish, answer.finish_without_arrivals, answer.now, wide=wide),
    ]
    header = ["", "10 %", "50 %", "90 %", "IF NO JOB COMES"]
    write_table([*header, *(["50 % AT", "90 % AT"] if wide else [])], rows, nothing="")
    by = f"{count(answer.draws, 'draw')} of further jobs" if answer.draws else "no further jobs: none has come yet"
    write_line(by)


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
