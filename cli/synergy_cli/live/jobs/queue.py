"""`kubectl synergy queue`: the waiting jobs."""

import time
from collections.abc import Sequence

import click

from synergy_api.parts.summary import steps_text
from synergy_cli.live.access import Cluster, Where
from synergy_cli.live.moments import start_text
from synergy_cli.live.options import cluster_options, output_option, watch_option
from synergy_cli.live.output import write_data, write_table
from synergy_cli.live.watching import answer
from synergy_view.queue import QueueRow, queue
from synergy_view.words import duration


@click.command("queue")
@cluster_options(everywhere=True)
@output_option()
@watch_option
def queue_command(*, where: Where, output: str, watch: bool) -> None:
    """List the waiting jobs in the order of the policy, each with its reason."""

    async def question(cluster: Cluster) -> list[QueueRow]:
        return queue(await cluster.jobs(cluster.namespace), time.time())

    def write(rows: list[QueueRow]) -> None:
        _write(rows, output, everywhere=where.namespace is None)

    answer(where, question, write, watch=watch)


def _write(rows: Sequence[QueueRow], output: str, *, everywhere: bool) -> None:
    if output in ("json", "yaml"):
        write_data(list(rows), output)
        return
    header = ["POSITION", *(["NAMESPACE"] if everywhere else []), "JOB", "GPUS", "PROGRESS", "WAITS", "START", "REASON"]
    header += ["START BY", "TYPES", "MESSAGE"] if output == "wide" else []
    cells = [_cells(row, output, everywhere) for row in rows]
    if any(row.cluster for row in rows):
        header, cells = [*header, "CLUSTER"], [[*c, row.cluster or "-"] for c, row in zip(cells, rows, strict=True)]
    write_table(header, cells, nothing="no job waits")


def _cells(row: QueueRow, output: str, everywhere: bool) -> list[str]:
    cells = ["-" if row.position is None else str(row.position), *([row.namespace] if everywhere else []), row.job]
    cells += [
        str(row.gpus),
        steps_text(row.steps_done, row.steps),
        duration(row.waiting_s),
        start_text(row.start_s),
        row.reason,
    ]
    return (
        [*cells, start_text(row.start_by_s), ",".join(row.gpu_types) or "any", row.message]
        if output == "wide"
        else cells
    )
