"""`kube-synergy bench e2e`: all figures in one run."""

import asyncio
import importlib.util
import json
import signal
import tempfile
from pathlib import Path
from typing import Any

import click

import synergy_devcluster
from synergy_cli.bench.e2e.aims import aims
from synergy_cli.bench.e2e.load import GPUS_PER_NODE
from synergy_cli.bench.e2e.machine import machine
from synergy_cli.bench.e2e.run import Sizes, measure
from synergy_cli.bench.e2e.table import text
from synergy_cli.bench.e2e.table_of_stages import reconcile_text, starts_text
from synergy_devcluster import DevclusterError, FakeNodes, Options
from synergy_devcluster.run_with import at_hand
from synergy_kube import KubeClient
from synergy_kube.resources import DEPLOYMENTS

_NEEDS = {"kopf": "operator", "uvicorn": "extender"}
_TEXTS = {"all": text, "reconcile": reconcile_text, "starts": starts_text}


@click.command("e2e")
@click.option(
    "--jobs",
    default=1000,
    show_default=True,
    type=click.IntRange(20, 5000),
    help="Number of TrainingJobs at the largest size.",
)
@click.option(
    "--pods",
    default=400,
    show_default=True,
    type=click.IntRange(10, 5000),
    help="Number of pods bound in one repetition.",
)
@click.option(
    "--repeats",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    help="Number of repetitions. A figure is their median.",
)
@click.option(
    "--stage",
    default="all",
    show_default=True,
    type=click.Choice(["all", "reconcile", "starts"]),
    help="Measure everything, or one stage alone by turns with its references: jobs reconciled once, or jobs from "
    "creation to Running.",
)
@click.option(
    "--logs", type=click.Path(path_type=Path, file_okay=False), help="Keep the logs of the processes in this folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def e2e(*, jobs: int, pods: int, repeats: int, stage: str, logs: Path | None, as_json: bool) -> None:
    """Measure the components under load, on a devcluster with fake nodes that the command starts."""
    for module, extra in _NEEDS.items():
        if importlib.util.find_spec(module) is None:
            raise click.ClickException(f"bench e2e needs {module}: install kube-synergy[{extra}]")
    sizes = Sizes(jobs=jobs, pods=pods, turns=repeats)
    size = machine()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended then too
    try:
        figures = _on_a_cluster(sizes, stage, logs)
    except DevclusterError as error:
        raise click.ClickException(str(error)) from error
    report = {"benchmark": "e2e", "machine": size, **figures}
    if stage == "all":
        report["aims"] = aims(report)
    click.echo(json.dumps(report) if as_json else _TEXTS[stage](report))


def _on_a_cluster(sizes: Sizes, stage: str, logs: Path | None) -> dict[str, Any]:
    group = FakeNodes("V100", sizes.nodes, GPUS_PER_NODE, 96, 512 << 30)
    options = Options(gpus=0, fake_nodes=(group,))
    with at_hand(options, report=_tell) as cluster, tempfile.TemporaryDirectory() as folder:
        if not cluster.options.same_cluster(options):
            raise click.ClickException(
                f"a devcluster with other options is running ({cluster.options.in_words()}): "
                f"take it down, or run one with {options.in_words()}"
            )
        place = logs or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        return asyncio.run(_measure(cluster, place, sizes, stage))


async def _measure(cluster: synergy_devcluster.Cluster, folder: Path, sizes: Sizes, stage: str) -> dict[str, Any]:
    async with await KubeClient.connect(kubeconfig=str(cluster.kubeconfig)) as kube:
        installed = (await kube.list(DEPLOYMENTS, "kube-synergy"))["items"]
        if installed:
            raise click.ClickException(
                "kube-synergy is installed in this cluster and would plan too: uninstall it first"
            )
        return await measure(cluster, kube, folder, sizes, stage=stage, tell=_tell)


def _tell(message: str) -> None:
    click.echo(message, err=True)
