"""`kube-synergy bench e2e`: all figures in one run."""

import asyncio
import importlib.util
import json
import signal
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

import synergy_devcluster
from synergy_cli.bench.e2e.aims import aims
from synergy_cli.bench.e2e.load import GPUS_PER_NODE
from synergy_cli.bench.e2e.machine import machine
from synergy_cli.bench.e2e.run import Sizes, measure
from synergy_cli.bench.e2e.table import beside_text, text
from synergy_cli.bench.e2e.table_of_stages import reconcile_text, starts_text
from synergy_cli.bench.e2e.version import Version
from synergy_devcluster import DevclusterError, FakeNodes, Options
from synergy_devcluster.run_with import alone, at_hand
from synergy_kube import KubeClient
from synergy_kube.resources import DEPLOYMENTS

_NEEDS = {"kopf": "operator", "uvicorn": "extender"}
_Begun = Callable[..., AbstractContextManager[synergy_devcluster.Cluster]]
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
    help="Number of turns of bindings, or of the stage. A figure is their median.",
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
    "--beside",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="A checkout of another version, which is measured first under the same load, on a devcluster of its own. Its "
    "operator, extender, custom resources and chart count; references and load are this version's.",
)
@click.option(
    "--logs", type=click.Path(path_type=Path, file_okay=False), help="Keep the logs of the processes in this folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def e2e(
    *, jobs: int, pods: int, repeats: int, stage: str, beside: Path | None, logs: Path | None, as_json: bool
) -> None:
    """Measure the components under load, on a devcluster with fake nodes that the command starts."""
    for module, extra in _NEEDS.items():
        if importlib.util.find_spec(module) is None:
            raise click.ClickException(f"bench e2e needs {module}: install kube-synergy[{extra}]")
    other = Version(beside) if beside is not None else None
    if other is not None and other.missing:
        raise click.BadParameter(
            f"{beside} has no {', no '.join(other.missing)}: name a checkout of kube-synergy", param_hint="--beside"
        )
    sizes = Sizes(jobs=jobs, pods=pods, turns=repeats)
    size = machine()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended then too
    with tempfile.TemporaryDirectory() as folder:
        place = logs or Path(folder)
        try:
            if other is None:
                report = _report(size, _on(at_hand, sizes, stage, place, Version()), stage)
            else:
                before = _report(size, _on(alone, sizes, stage, place / "beside", other), stage)
                _tell(f"{beside}:\n{_text(before, stage)}")
                report = _report(size, _on(alone, sizes, stage, place, Version()), stage) | {"beside": before}
        except DevclusterError as error:
            raise click.ClickException(str(error)) from error
    click.echo(json.dumps(report) if as_json else _text(report, stage))


def _report(size: dict[str, Any], figures: dict[str, Any], stage: str) -> dict[str, Any]:
    report = {"benchmark": "e2e", "machine": size, **figures}
    return {**report, "aims": aims(report)} if stage == "all" else report


def _text(report: dict[str, Any], stage: str) -> str:
    """The report, and what of the other version there is to compare."""
    this = _TEXTS[stage](report)
    if "beside" not in report:
        return this
    return f"{this}\n\n{beside_text(report) if stage == 'all' else 'beside: ' + _TEXTS[stage](report['beside'])}"


def _on(begun: _Begun, sizes: Sizes, stage: str, folder: Path, version: Version) -> dict[str, Any]:
    """The figures of a version, on a devcluster."""
    group = FakeNodes("V100", sizes.nodes, GPUS_PER_NODE, 96, 512 << 30)
    options = Options(gpus=0, fake_nodes=(group,))
    with begun(options, report=_tell) as cluster:
        if not cluster.options.same_cluster(options):
            raise click.ClickException(
                f"a devcluster with other options is running ({cluster.options.in_words()}): "
                f"take it down, or run one with {options.in_words()}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        return asyncio.run(_measure(cluster, folder, sizes, stage, version))


async def _measure(
    cluster: synergy_devcluster.Cluster, folder: Path, sizes: Sizes, stage: str, version: Version
) -> dict[str, Any]:
    async with await KubeClient.connect(kubeconfig=str(cluster.kubeconfig)) as kube:
        installed = (await kube.list(DEPLOYMENTS, "kube-synergy"))["items"]
        if installed:
            raise click.ClickException(
                "kube-synergy is installed in this cluster and would plan too: uninstall it first"
            )
        return await measure(cluster, kube, folder, sizes, stage=stage, version=version, tell=_tell)


def _tell(message: str) -> None:
    click.echo(message, err=True)
