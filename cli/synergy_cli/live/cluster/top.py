"""`kubectl synergy top` and `usage`: who has the GPUs now, and who has had them."""

import time

import click

from synergy_api.parts.summary import steps_text
from synergy_cli.choice import Choice
from synergy_cli.live.access import Cluster, Where, ask
from synergy_cli.live.moments import moment, seconds_of
from synergy_cli.live.nodes import gpu_nodes
from synergy_cli.live.options import cluster_options, output_option, watch_option
from synergy_cli.live.output import heading, note, write_data, write_table
from synergy_cli.live.record import Record, from_record, system_namespace_option
from synergy_cli.live.watching import answer
from synergy_kube.resources import GPU_POOLS, NODES
from synergy_view.top import Top, top
from synergy_view.usage import UsageRow, usage
from synergy_view.words import cpus, gib

_PARTS = ("types", "nodes", "jobs", "tenants")


@click.command("top")
@click.argument("part", type=Choice(_PARTS), required=False)
@cluster_options()
@output_option(wide=False)
@watch_option
def top_command(*, part: str | None, where: Where, output: str, watch: bool) -> None:
    """Show which jobs and tenants hold the GPUs: by type, node, job and tenant, or by one of these."""

    def write(found: tuple[Top, str]) -> None:
        picture, hidden = found
        if output != "table":
            write_data(getattr(picture, part) if part else picture, output)
        else:
            _write(picture, [part] if part else _PARTS)
        note(hidden)

    answer(where, _picture, write, watch=watch)


async def _picture(cluster: Cluster) -> tuple[Top, str]:
    jobs, hidden = await cluster.visible_jobs()
    nodes, pools = await cluster.items(NODES), await cluster.items(GPU_POOLS)
    if nodes is None:
        hidden = "; ".join(part for part in (hidden, "you may not list nodes: free GPUs are not known") if part)
    return top(jobs, gpu_nodes(nodes or (), pools or ()), time.time()), hidden


def _write(picture: Top, parts: list[str] | tuple[str, ...]) -> None:
    for index, part in enumerate(parts):
        if index:
            click.echo()
        _WRITERS[part](picture)


def _types(picture: Top) -> None:
    heading("GPU types")
    rows = [
        [row.gpu_type, str(row.nodes), f"{row.gpus_given}/{row.gpus}" if row.gpus else str(row.gpus_given),
         str(row.gpus_wanted)]
        for row in picture.types
    ]  # fmt: skip
    write_table(["TYPE", "NODES", "GPUS", "WANTED"], rows, nothing="no GPU is given to a job")


def _nodes(picture: Top) -> None:
    heading("Nodes")
    rows = [
        [row.node, row.gpu_type or "unknown", f"{row.gpus_given}/{row.gpus}",
         f"{cpus(row.cpu_millis_given)}/{cpus(row.cpu_millis)}",
         f"{gib(row.memory_bytes_given)}/{gib(row.memory_bytes)}", "yes" if row.open_to_new else "no",
         ", ".join(row.jobs)]
        for row in picture.nodes
    ]  # fmt: skip
    write_table(["NODE", "TYPE", "GPUS", "CPU", "MEMORY", "OPEN", "JOBS"], rows, nothing="no node can be seen")


def _jobs(picture: Top) -> None:
    heading("Running jobs")
    rows = [
        [row.job, f"{row.gpus} {row.gpu_type}", str(row.nodes), steps_text(row.steps_done, row.steps),
         f"{row.steps_per_s:.3g} steps/s", "-" if row.gain is None else f"{row.gain:.2f}x", ", ".join(row.partners),
         row.metrics]
        for row in picture.jobs
    ]  # fmt: skip
    write_table(
        ["JOB", "GPUS", "NODES", "PROGRESS", "SPEED", "GAIN", "PARTNERS", "METRICS"], rows, nothing="no job runs"
    )


def _tenants(picture: Top) -> None:
    heading("Tenants")
    rows = [
        [row.tenant, str(row.running), str(row.waiting), str(row.gpus_given), str(row.gpus_wanted),
         f"{row.gpu_hours:.1f}"]
        for row in picture.tenants
    ]  # fmt: skip
    write_table(["TENANT", "RUNNING", "WAITING", "GPUS", "WANTED", "GPU-HOURS"], rows, nothing="there is no job")


_WRITERS = {"types": _types, "nodes": _nodes, "jobs": _jobs, "tenants": _tenants}


@click.command("usage")
@click.option("--since", default="7d", show_default=True, help="How far back: 12h, 7d, 4w.")
@system_namespace_option
@cluster_options(everywhere=True)
@output_option(wide=False)
def usage_command(*, since: str, system_namespace: str, where: Where, output: str) -> None:
    """Show GPU-hours, waiting time and gain by tenant and namespace.

    The command reads the dashboard's history, which has deleted jobs too. Without the dashboard, it shows what the jobs
    that still exist have had since they were created.
    """
    since_s = time.time() - seconds_of("--since", since)

    async def question(cluster: Cluster) -> list[UsageRow]:
        async def recorded(record: Record) -> list[UsageRow]:
            found = await record.json("usage", since_s=since_s, namespace=cluster.namespace)
            if found["recorded_since_s"] is not None and found["recorded_since_s"] > since_s:
                note(f"the history begins at {moment(found['recorded_since_s'])}")
            return [UsageRow(**one) for one in found["rows"]]

        async def otherwise() -> list[UsageRow]:
            return usage(await cluster.jobs(cluster.namespace), time.time())

        return await from_record(cluster, system_namespace, recorded, otherwise)

    rows = ask(where, question)
    if output != "table":
        write_data(rows, output)
        return
    cells = [
        [row.tenant, row.namespace, str(row.jobs), str(row.finished), f"{row.gpu_hours:.1f}",
         f"{row.waiting_hours:.1f}", "-" if row.gain is None else f"{row.gain:.2f}x", str(row.preemptions)]
        for row in rows
    ]  # fmt: skip
    header = ["TENANT", "NAMESPACE", "JOBS", "FINISHED", "GPU-HOURS", "WAITING-HOURS", "GAIN", "PREEMPTIONS"]
    write_table(header, cells, nothing="there is no job")
