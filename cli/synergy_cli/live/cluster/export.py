"""`kubectl synergy export`: the cluster's jobs as inputs of the simulator."""

import csv
import io
import json
import shlex
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

import click
import yaml

from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME
from synergy_cli.errors import BadInputError
from synergy_cli.live.access import Cluster, Object, Where, ask
from synergy_cli.live.cluster.replay import replay_words
from synergy_cli.live.moments import seconds_of
from synergy_cli.live.nodes import gpu_nodes
from synergy_cli.live.options import cluster_options, output_option
from synergy_cli.live.output import note, write_data
from synergy_cli.live.record import Record, from_record, system_namespace_option
from synergy_extender.planning.policy import PolicyInForce, plan_config, policy_in_force, with_prices
from synergy_kube.resources import GPU_POOLS, NODES, SCHEDULING_POLICIES
from synergy_view.export import COLUMNS, Export, Measured, export
from synergy_view.words import count, duration

_FILES: Final = ("trace.csv", "profiles.json", "cluster.yaml")


@dataclass(frozen=True, slots=True)
class _Past:
    """The files by name, how many jobs they have, how these did, and what is left out."""

    files: Mapping[str, str]
    jobs: int
    measured: Measured
    notes: tuple[str, ...]


@click.command("export")
@click.option("--since", default="7d", show_default=True, help="Only jobs created within this time: 12h, 7d, 4w.")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder that the files are written to.",
)
@system_namespace_option
@cluster_options(everywhere=True)
@output_option(wide=False)
def export_command(*, since: str, out: str, system_namespace: str, where: Where, output: str) -> None:
    """Write past jobs as trace.csv, their matrices as profiles.json and the nodes as cluster.yaml.

    kube-synergy simulate and compare read these files. The last line of the output simulates what the cluster did. The
    dashboard's history has deleted jobs too; without the dashboard only jobs that still exist are written.
    """
    since_s = time.time() - seconds_of("--since", since)

    async def question(cluster: Cluster) -> tuple[_Past, PolicyInForce]:
        nodes, pools = await cluster.items(NODES), await cluster.items(GPU_POOLS)
        capacities = gpu_nodes(nodes or (), pools or ())
        policies = await cluster.items(SCHEDULING_POLICIES)
        if policies is None:
            note("you may not see the SchedulingPolicy: its defaults are assumed")
        policy = with_prices(policy_in_force(_default(policies or []), PolicyInForce()), PolicyInForce(), capacities)

        async def recorded(record: Record) -> _Past:
            return _unpacked(await record.get("export", since_s=since_s, namespace=cluster.namespace))

        async def otherwise() -> _Past:
            note("you may not list nodes" if nodes is None else "")
            jobs = await cluster.jobs(cluster.namespace)
            return _packed(export(jobs, capacities, since_s, round_s=policy.spec.round_seconds))

        return await from_record(cluster, system_namespace, recorded, otherwise), policy

    found, policy = ask(where, question)
    for text in found.notes:
        note(text)
    if not found.jobs:
        raise click.ClickException(f"no job of the last {since} can be exported")
    names = _write(found.files, Path(out))
    replay = replay_words(
        Path(out), plan_config(policy, "round"), policy.spec.round_seconds, start_s=found.measured.start_s,
        restart_s=found.measured.restart_s,
    )  # fmt: skip
    if output != "table":
        write_data({"jobs": found.jobs, "files": names, "measured": found.measured, "replay": replay}, output)
        return
    click.echo(f"{count(found.jobs, 'job')} written: {', '.join(str(Path(out) / name) for name in names)}")
    if found.measured.avg_jct_s is not None:
        click.echo(f"{found.measured.ended} of them ended, on average after {duration(found.measured.avg_jct_s)}")
    click.echo(f"the same again: {shlex.join(replay)}")


def _default(policies: list[Object]) -> Object | None:
    return next((one for one in policies if one["metadata"]["name"] == DEFAULT_POLICY_NAME), None)


def _unpacked(archive: bytes) -> _Past:
    """The dashboard's zip file."""
    with zipfile.ZipFile(io.BytesIO(archive)) as content:
        texts = {name: content.read(name).decode() for name in content.namelist()}
    return _Past(
        files={name: texts[name] for name in _FILES if name in texts},
        jobs=len(list(csv.DictReader(io.StringIO(texts["trace.csv"])))),
        measured=Measured(**json.loads(texts["measured.json"])),
        notes=tuple(texts["notes.txt"].splitlines()),
    )


def _packed(found: Export) -> _Past:
    trace = io.StringIO()
    writer = csv.DictWriter(trace, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found.trace)
    files = {"trace.csv": trace.getvalue(), "profiles.json": json.dumps(found.profiles, indent=1) + "\n"}
    if found.cluster is not None:
        files["cluster.yaml"] = yaml.safe_dump(found.cluster, sort_keys=False)
    jcts = found.jcts_s
    measured = Measured(ended=len(jcts), avg_jct_s=fmean(jcts) if jcts else None)
    return _Past(files, len(found.trace), measured, found.notes)


def _write(files: Mapping[str, str], folder: Path) -> list[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise BadInputError(f"--out: {folder}: {error.strerror}") from error
    return list(files)
