"""`kube-synergy demo`."""

import asyncio
import time
from pathlib import Path

import click
from rich.console import Console

import synergy_devcluster
from synergy_cli.demo import story
from synergy_cli.demo.checks import shortcomings
from synergy_cli.demo.table import summary
from synergy_cli.product import install
from synergy_devcluster import prerequisites
from synergy_kube import KubeClient

_LOG_WIDTH = 160
"""Columns where the output goes to a file."""
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


@click.command()
@click.option(
    "--manifests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path("examples/demo"),
    show_default=True,
    help="Folder of the demo's manifests.",
)
@click.option("--minutes", default=15.0, show_default=True, help="Give up when the jobs have not finished by then.")
@click.option("--keep", is_flag=True, help="Leave the cluster running afterwards.")
def demo(manifests: Path, minutes: float, keep: bool) -> None:
    """From nothing to jobs finishing on a real cluster on this machine, told as it happens."""
    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(highlight=False, width=_LOG_WIDTH)
    try:
        prerequisites.check()
        cluster = synergy_devcluster.up(synergy_devcluster.Options(gpus=2), report=console.print)
        install(cluster, report=console.print)
        told = asyncio.run(_tell(cluster, manifests, minutes * 60, console))
    except (synergy_devcluster.DevclusterError, story.DemoError) as error:
        raise click.ClickException(str(error)) from error
    console.print(summary(told))
    missing = shortcomings(told)
    for text in missing:
        console.print(f"[red]not shown:[/red] {text}")
    if keep:
        console.print(f"the cluster is still there: export KUBECONFIG={cluster.kubeconfig}")
    else:
        synergy_devcluster.down(report=console.print)
    if missing:
        raise click.exceptions.Exit(1)
    console.print("[green]all that the demo is to show was shown[/green]")


async def _tell(cluster: synergy_devcluster.Cluster, manifests: Path, seconds: float, console: Console) -> story.Story:
    begun = time.monotonic()
    colours: dict[str, str] = {}

    def tell(name: str, text: str) -> None:
        colour = colours.setdefault(name, _COLOURS[len(colours) % len(_COLOURS)]) if name else "bold"
        console.print(f"{time.monotonic() - begun:6.1f} s  [{colour}]{name or 'cluster':<12}[/] {text}", soft_wrap=True)

    async with await KubeClient.connect(kubeconfig=str(cluster.kubeconfig)) as kube:
        return await story.run(kube, manifests, seconds=seconds, tell=tell)
