"""`kubectl synergy tenants`: the tree of Tenants with their GPUs."""

import click

from synergy_cli.live.access import Cluster, Where
from synergy_cli.live.options import cluster_options, output_option, watch_option
from synergy_cli.live.output import write_data, write_line, write_table
from synergy_cli.live.watching import answer
from synergy_kube.resources import TENANTS
from synergy_view.tenants import TenantRow, gpus_in_types, tenant_rows


@click.command("tenants")
@cluster_options()
@output_option()
@watch_option
def tenants_command(*, where: Where, output: str, watch: bool) -> None:
    """Show the tree of Tenants: GPUs guaranteed, used, borrowed, lent and waited for, and GPU-hours of a day and week.

    What the tenants below one use counts for it too. Problems of the tree are listed below the table.
    """

    async def question(cluster: Cluster) -> list[TenantRow]:
        found = await cluster.items(TENANTS)
        if found is None:
            raise click.ClickException("you may not list Tenants, or the cluster has no such resource")
        return tenant_rows(found)

    answer(where, question, lambda rows: _write(rows, output), watch=watch)


def _write(rows: list[TenantRow], output: str) -> None:
    if output in ("json", "yaml"):
        write_data(rows, output)
        return
    header = ["TENANT", "GUARANTEED", "USED", "BORROWED", "LENT", "WAITING", "DAY", "WEEK"]
    header += ["LIMIT", "WEIGHT", "NAMESPACES", "JOBS"] if output == "wide" else []
    write_table(header, [_cells(row, output) for row in rows], nothing="there is no Tenant")
    for row in rows:
        for problem in row.problems:
            write_line(f"{row.tenant}: {problem}")


def _cells(row: TenantRow, output: str) -> list[str]:
    gpus = (row.guaranteed, row.used, row.borrowed, row.lent, row.waiting)
    cells = ["  " * row.level + row.tenant, *(gpus_in_types(one) for one in gpus)]
    cells += [gpus_in_types({kind: round(count, 1) for kind, count in hours.items()})
              for hours in (row.gpu_hours_day, row.gpu_hours_week)]  # fmt: skip
    if output == "wide":
        cells += [gpus_in_types(row.limit), f"{row.weight:g}", str(row.namespaces), str(row.jobs)]
    return cells
