"""`kubectl synergy profile`, `history` and `logs`: one job in detail."""

import time

import click

from kube_synergy.live.following import log_lines, worker_pods
from synergy_cli.live.access import Cluster, Where, ask
from synergy_cli.live.moments import moment
from synergy_cli.live.options import cluster_options, job_argument, output_option
from synergy_cli.live.output import heading, note, write_data, write_line, write_table
from synergy_cli.live.record import Record, from_record, system_namespace_option
from synergy_kube.resources import EVENTS
from synergy_view.history import Happening, History, history, told_by
from synergy_view.surface import Surface, surfaces
from synergy_view.words import cpus, gib

_WIDTH = 32
"""Characters of the longest bar."""


@click.command("profile")
@job_argument
@cluster_options()
@output_option(wide=False)
def profile_command(*, job: str, where: Where, output: str) -> None:
    """Show a job's sensitivity surface (speed by CPU and memory on each GPU type), its demand and its allocation."""

    async def question(cluster: Cluster) -> tuple[list[Surface], str]:
        asked = await cluster.job(job)
        profile = asked.status.profile
        return surfaces(asked), profile.state if profile is not None else "not begun"

    found, state = ask(where, question)
    if output != "table":
        write_data(found, output)
        return
    if not found:
        write_line(f"{job} has no profile: it is {state.lower()}")
    for index, surface in enumerate(found):
        if index:
            click.echo()
        _draw(surface)


def _draw(surface: Surface) -> None:
    confidence = ""
    if surface.confidence:
        spread = f" (within {surface.uncertainty:.0%})" if surface.uncertainty is not None else ""
        confidence = f", confidence {surface.confidence}{spread} from {surface.runs} runs"
    heading(f"{surface.gpu_type}: steps/s by CPU, at {gib(surface.memory_bytes[-1])} of memory{confidence}")
    width = max(len(cpus(one)) for one in surface.cpu_millis)
    for millis, row in zip(surface.cpu_millis, surface.steps_per_s, strict=True):
        bar = "█" * max(1, round(_WIDTH * row[-1] / surface.best))
        marks = _marks(surface, millis)
        write_line(f"  {cpus(millis):>{width}} CPU  {bar:<{_WIDTH}}  {row[-1]:.3g}{marks}")
    for name, place in (("demand", surface.demand), ("given", surface.given)):
        if place is not None:
            write_line(f"  {name}: {cpus(place[0])} CPU, {gib(place[1])}")
    if len(surface.memory_bytes) > 1:
        _memory(surface)


def _marks(surface: Surface, millis: int) -> str:
    marks = ["measured"] if millis in surface.measured else []
    if surface.demand is not None and millis == min(
        surface.cpu_millis, key=lambda one: abs(one - _cpu(surface.demand))
    ):
        marks.append("demand")
    if surface.given is not None and millis == min(surface.cpu_millis, key=lambda one: abs(one - _cpu(surface.given))):
        marks.append("given")
    return f"  ({', '.join(marks)})" if marks else ""


def _cpu(place: tuple[int, int] | None) -> int:
    return 0 if place is None else place[0]


def _memory(surface: Surface) -> None:
    """Percent of the best speed, a row for each CPU point."""
    header = ["CPU", *(gib(one) for one in surface.memory_bytes)]
    rows = [
        [cpus(millis), *(f"{speed / surface.best:.0%}" for speed in row)]
        for millis, row in zip(surface.cpu_millis, surface.steps_per_s, strict=True)
    ]
    write_line("  percent of its best speed, by CPU and memory:")
    write_table(header, rows, nothing="")


@click.command("history")
@job_argument
@system_namespace_option
@cluster_options()
@output_option(wide=False)
def history_command(*, job: str, system_namespace: str, where: Where, output: str) -> None:
    """Show what happened to a job: its runs, which job displaced it and by which rule, resizes, partners and waits.

    The command reads the dashboard's history, also for a deleted job. Without the dashboard, it reads the job's events,
    for as long as Kubernetes keeps them, and the totals of its runs.
    """

    async def question(cluster: Cluster) -> History:
        async def recorded(record: Record) -> History:
            found = await record.json(f"jobs/{cluster.own_namespace}/{job}/history")
            return History(tuple(Happening(**one) for one in found["happenings"]), tuple(found["totals"]))

        async def otherwise() -> History:
            asked = await cluster.job(job)
            selector = f"involvedObject.uid={asked.uid}"
            events = await cluster.items(EVENTS, cluster.own_namespace, field_selector=selector)
            note("you may not list events: they are left out" if events is None else "")
            told = filter(None, map(told_by, events or ()))
            return history(asked, [happening for uid, happening in told if uid == asked.uid])

        return await from_record(cluster, system_namespace, recorded, otherwise)

    found = ask(where, question)
    if output != "table":
        write_data(found, output)
        return
    rows = [[moment(one.at_s), one.what, one.message] for one in found.happenings]
    write_table(["TIME", "WHAT", "MESSAGE"], rows, nothing="nothing has happened")
    for total in found.totals:
        write_line(total)


@click.command("logs")
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the workers end.")
@click.option("--rank", type=click.IntRange(0), help="Rank of a worker.  [default: all workers]")
@click.option("--tail", type=click.IntRange(0), help="Print only this many last lines of each worker.")
@cluster_options()
def logs_command(*, job: str, where: Where, follow: bool, rank: int | None, tail: int | None) -> None:
    """Print the output of a job's workers: every rank of every run whose pods still exist, oldest run first."""

    async def question(cluster: Cluster) -> int:
        asked = await cluster.job(job)
        pods = await worker_pods(cluster, asked.name, asked.uid, rank)
        async for line in log_lines(cluster, pods, follow=follow, tail=tail):
            if line.problem:
                note(line.text)
            else:
                click.echo(f"[run {line.run} rank {line.rank}] {line.text}" if len(pods) > 1 else line.text)
        return len(pods)

    started = time.monotonic()
    try:
        if not ask(where, question):
            write_line(f"no pod of {job} exists now; kubectl synergy why {job} says where it stands", err=True)
    except KeyboardInterrupt:
        note(f"stopped after {time.monotonic() - started:.0f} s")
