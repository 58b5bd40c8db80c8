"""`kube-synergy demo`."""

import asyncio
import time
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

import synergy_devcluster
from synergy_cli.choice import Choice
from synergy_cli.demo import story
from synergy_cli.demo.asking import ask, dashboard
from synergy_cli.demo.checks import shortcomings
from synergy_cli.demo.kind import KindCluster
from synergy_cli.demo.place import DemoCluster, Devcluster
from synergy_cli.demo.table import summary
from synergy_cli.product import SOURCE
from synergy_kube import KubeClient

_LOG_WIDTH = 160
"""Columns where the output goes to a file."""
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


@click.command()
@click.option(
    "--manifests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=SOURCE / "examples" / "demo",
    show_default="examples/demo of the source tree",
    help="Folder of the demo's manifests.",
)
@click.option(
    "--minutes", default=15, show_default=True, type=click.IntRange(1), help="Give up after this many seconds."
)
@click.option("--keep", is_flag=True, help="Leave the cluster running afterwards.")
@click.option(
    "--on",
    "where",
    type=Choice(["devcluster", "kind"]),
    default="devcluster",
    show_default=True,
    help="A cluster without Docker, or one of kind, which needs Docker, kind and Helm.",
)
def demo(manifests: Path, minutes: int, keep: bool, where: str) -> None:
    """Start a real cluster on this machine, run training jobs on it, and show what happens.

    If a devcluster runs already, the demo uses it and leaves it running.
    """
    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(highlight=False, width=_LOG_WIDTH)
    place: DemoCluster = KindCluster() if where == "kind" else Devcluster()
    try:
        documents = story.documents(manifests)
        place.check()
    except (synergy_devcluster.DevclusterError, story.DemoError) as error:
        raise click.ClickException(str(error)) from error
    try:
        place.start(console.print)
    except (synergy_devcluster.DevclusterError, KeyboardInterrupt) as error:
        console.print(f"what was started is still there: {place.how_to_end} ends it")
        if isinstance(error, KeyboardInterrupt):
            raise
        raise click.ClickException(str(error)) from error
    try:
        with dashboard(place.kubeconfig, place.kubectl, console):
            told = asyncio.run(_tell(place, documents, minutes * 60, console))
    except story.DemoError as error:
        console.print(_still_there(place))
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        console.print(_still_there(place))
        raise
    console.print(summary(told))
    missing = shortcomings(told)
    for text in missing:
        console.print(f"[red]not shown:[/red] {text}")
    if place.mine and not keep:
        place.end(console.print)
    else:
        console.print(_still_there(place))
    if missing:
        raise click.exceptions.Exit(1)
    console.print("[green]the demo has shown all that it should[/green]")


def _still_there(place: DemoCluster) -> str:
    return f"the cluster is still running: export KUBECONFIG={place.kubeconfig}\n{place.how_to_end} ends it"


async def _tell(place: DemoCluster, documents: list[story.Document], seconds: float, console: Console) -> story.Story:
    begun = time.monotonic()
    colours: dict[str, str] = {}

    def tell(name: str, text: str) -> None:
        colour = colours.setdefault(name, _COLOURS[len(colours) % len(_COLOURS)]) if name else "bold"
        console.print(f"{time.monotonic() - begun:6.1f} s  [{colour}]{name or 'cluster':<12}[/] {text}", soft_wrap=True)

    async def explain(name: str) -> None:
        for command in ("why", "when"):
            for line in await ask(place.kubeconfig, command, name, story.NAMESPACE):
                tell(name, escape(line))

    async with await KubeClient.connect(kubeconfig=str(place.kubeconfig)) as kube:
        return await story.run(
            kube, documents, seconds=seconds, tell=tell, explain=explain, cpu_millis=place.cpu_millis
        )
