"""`kubectl synergy export`: the cluster's jobs as inputs of the simulator."""

import csv
import json
import re
import time
from pathlib import Path

import click
import yaml

from synergy_cli.errors import BadInputError
from synergy_cli.live.access import Cluster, Where, ask
from synergy_cli.live.nodes import gpu_nodes
from synergy_cli.live.options import cluster_options
from synergy_cli.live.output import note
from synergy_kube.resources import GPU_POOLS, NODES
from synergy_view.export import COLUMNS, Export, export
from synergy_view.words import count

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@click.command("export")
@click.option("--since", default="7d", show_default=True, help="Only jobs created within this time: 12h, 7d, 4w.")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder that the files are written to.",
)
@cluster_options(everywhere=True)
def export_command(*, since: str, out: str, where: Where) -> None:
    """Write the jobs that still exist as trace.csv, their matrices as profiles.json and the nodes as cluster.yaml.

    kube-synergy simulate and compare read these files.
    """
    since_s = time.time() - _seconds(since)

    async def question(cluster: Cluster) -> tuple[Export, str]:
        jobs = await cluster.jobs(cluster.namespace)
        nodes, pools = await cluster.items(NODES), await cluster.items(GPU_POOLS)
        hidden = "you may not list nodes" if nodes is None else ""
        return export(jobs, gpu_nodes(nodes or (), pools or ()), since_s), hidden

    found, hidden = ask(where, question)
    for text in (hidden, *found.notes):
        note(text)
    if not found.trace:
        raise click.ClickException(f"no job of the last {since} can be exported")
    names = _write(found, Path(out))
    click.echo(f"{count(len(found.trace), 'job')} written: {', '.join(str(Path(out) / name) for name in names)}")


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if found is None:
        raise BadInputError(f"--since: {text!r} is no time such as 12h, 7d or 4w")
    return float(int(found[1]) * _UNITS[found[2]])


def _write(found: Export, folder: Path) -> list[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "trace.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found.trace)
        (folder / "profiles.json").write_text(json.dumps(found.profiles, indent=1) + "\n")
        if found.cluster is not None:
            (folder / "cluster.yaml").write_text(yaml.safe_dump(found.cluster, sort_keys=False))
    except OSError as error:
        raise BadInputError(f"--out: {folder}: {error.strerror}") from error
    return ["trace.csv", "profiles.json", *(["cluster.yaml"] if found.cluster is not None else [])]
