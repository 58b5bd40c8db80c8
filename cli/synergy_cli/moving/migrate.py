"""`kubectl synergy migrate`: queues and jobs of Kueue, Volcano and KAI as Tenants and TrainingJobs."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import click
import yaml

from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.files import in_file, read_input
from synergy_view.moving import UNTYPED, Choices, Remark, Translation, translate
from synergy_view.words import printable

_WIDTH = 100


@click.command("migrate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--gpu-type", "types", multiple=True, metavar="[FLAVOR=]TYPE",
    help="GPU type of the queues, or of one Kueue flavor. Can be repeated.",
)  # fmt: skip
@click.option(
    "--namespace", "namespaces", multiple=True, metavar="QUEUE=NAMESPACE",
    help="A namespace whose jobs are of a queue, where the files do not say it. Can be repeated.",
)  # fmt: skip
@click.option("-o", "--output", type=Choice(("yaml", "json")), default="yaml", help="Output format.")
def migrate_command(
    *, files: tuple[str, ...], types: tuple[str, ...], namespaces: tuple[str, ...], output: str
) -> None:
    """Translate queues and jobs of other schedulers into Tenants and TrainingJobs. FILE has their manifests; - is
    standard input.

    Queues: ClusterQueue, LocalQueue, Cohort, ResourceFlavor and WorkloadPriorityClass of Kueue; Queue of Volcano and of
    KAI. Jobs with GPUs: Job and Pod, Volcano's Job, Kubeflow's PyTorchJob. The command reads no cluster and changes
    none. A comment says of each line that has no counterpart what to do instead.
    """
    objects = [item for source in files for item in _objects(source)]
    try:
        found = translate(objects, Choices(_types(types), _namespaces(namespaces)))
    except ValueError as error:
        raise BadInputError(str(error)) from error
    if output == "json":
        tenants, jobs = ([item for item, _ in made] for made in (found.tenants, found.jobs))
        document = {"tenants": tenants, "jobs": jobs, "remarks": [asdict(remark) for remark in _all_remarks(found)]}
        click.echo(json.dumps(document, indent=2))
    else:
        _write(found)
    count = sum(1 for _ in _all_remarks(found))
    click.echo(f"{len(found.tenants)} Tenants, {len(found.jobs)} TrainingJobs, {count} remarks", err=True)


def _objects(source: str) -> Iterator[Any]:
    try:
        for document in yaml.safe_load_all(read_input(source, "FILE")):
            if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
                items = document.get("items") or []
                if not isinstance(items, list):
                    raise BadInputError(in_file(source, "items: must be a list"))
                yield from items
            elif document is not None:
                yield document
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise BadInputError(in_file(source, f"is not YAML: {problem}")) from error


def _types(given: Iterable[str]) -> dict[str, str]:
    found = {}
    for one in given:
        flavor, equals, gpu_type = one.rpartition("=")
        if not gpu_type or (equals and not flavor):
            raise BadInputError(f"--gpu-type: {one!r} names no GPU type; write TYPE or FLAVOR=TYPE")
        found[flavor or UNTYPED] = gpu_type
    return found


def _namespaces(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in given:
        queue, _, namespace = one.partition("=")
        if not queue or not namespace:
            raise BadInputError(f"--namespace: {one!r} is not QUEUE=NAMESPACE")
        found[queue] = (*found.get(queue, ()), namespace)
    return found


def _all_remarks(found: Translation) -> Iterator[Remark]:
    for _, remarks in (*found.tenants, *found.jobs):
        yield from remarks
    yield from found.others


def _write(found: Translation) -> None:
    for remark in found.others:
        click.echo(_comment(remark))
    for made, remarks in (*found.tenants, *found.jobs):
        click.echo("---")
        for remark in remarks:
            click.echo(_comment(remark))
        click.echo(yaml.safe_dump(made, sort_keys=False, width=_WIDTH).rstrip())


def _comment(remark: Remark) -> str:
    path = f" {remark.path}" if remark.path else ""
    return printable(f"# {remark.source}{path}: {remark.message}")
