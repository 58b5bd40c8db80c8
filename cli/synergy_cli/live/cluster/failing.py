"""`kubectl synergy nodes`: the nodes that keep failing jobs."""

import time

import click

from synergy_api.names import ANNOTATION_FAILURES_CLEARED
from synergy_api.timestamps import format_time
from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.live.access import Cluster, Where, ask
from synergy_cli.live.moments import moment
from synergy_cli.live.nodes import failing_rows
from synergy_cli.live.options import cluster_options, output_option
from synergy_cli.live.output import note, write_data, write_table
from synergy_kube import NotFound
from synergy_kube.resources import NODES
from synergy_view.top import FailingNodeRow


@click.command("nodes")
@click.option("--clear", metavar="NODE", help="Forget what failed on the node until now: it takes jobs again.")
@click.option(
    "--dry-run", type=Choice(["none", "server"]), default="none", help="server: check the change, but do not make it."
)
@cluster_options()
@output_option(wide=False)
def nodes_command(*, clear: str | None, dry_run: str, where: Where, output: str) -> None:
    """List the nodes that keep failing jobs, and what plans do with them.

    `failingNodes` of the SchedulingPolicy says how many jobs must have failed on a node. --clear needs the right to
    patch nodes.
    """
    if clear is not None:
        ask(where, lambda cluster: _clear(cluster, clear, dry=dry_run == "server"))
        click.echo(f"node/{clear} takes jobs again{' (dry run)' if dry_run == 'server' else ''}")
        return
    rows, hidden = ask(where, _failing)
    if output != "table":
        write_data(rows, output)
    else:
        cells = [
            [row.node, row.gpu_type, str(row.gpus), row.state, moment(row.retry_s), ", ".join(row.jobs)] for row in rows
        ]
        header = ["NODE", "TYPE", "GPUS", "STATE", "ONE JOB FROM", "FAILED JOBS"]
        write_table(header, cells, nothing="no node keeps failing jobs")
    note(hidden)


async def _clear(cluster: Cluster, node: str, *, dry: bool) -> None:
    annotations = {ANNOTATION_FAILURES_CLEARED: format_time(time.time())}
    try:
        await cluster.client.merge_patch(NODES, node, {"metadata": {"annotations": annotations}}, dry_run=dry)
    except NotFound:
        raise BadInputError(f"--clear: there is no node {node}") from None


async def _failing(cluster: Cluster) -> tuple[list[FailingNodeRow], str]:
    jobs, hidden = await cluster.visible_jobs()
    rows = await failing_rows(cluster, jobs)
    if rows is None:
        raise click.ClickException("you may not list nodes: ask the cluster's administrator to run this command")
    return rows, hidden
