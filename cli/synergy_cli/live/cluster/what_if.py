"""`kube-synergy what-if`: what a change would do to the jobs of a snapshot or of a cluster."""

import json
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.files import read_input
from synergy_cli.planning.futures import draw_options, field_errors, history_of, read_snapshot, what_if_text
from synergy_core.collector import collector_paused
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.snapshot import Job, PastJob, Snapshot
from synergy_core.model.snapshot_format import one_line
from synergy_core.policies import POLICIES
from synergy_simulator.forecast.what_if import Change, document, what_if

_JOB = TypeAdapter(Job)
_JOB_FIELDS = [one.name for one in fields(Job)]


@click.command("what-if")
@click.argument("snapshot", metavar="[SNAPSHOT.json]", required=False)
@click.option("-f", "--filename", help="Submit this TrainingJob (YAML; - for standard input).")
@click.option("--kubeconfig", help="Kubeconfig file.  [default: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", help="Context of the kubeconfig.")
@click.option("-n", "--namespace", help="Namespace of the TrainingJob.  [default: the context's]")
@click.option(
    "--add-job",
    "add_jobs",
    multiple=True,
    metavar="JOB.json",
    help="Add a job: a file with one element of a snapshot's jobs.",
)
@click.option(
    "--add-nodes",
    multiple=True,
    metavar="POOL=COUNT",
    help="Add COUNT nodes like those of a pool, a GPU type or a node.",
)
@click.option(
    "--remove-node", "remove_nodes", multiple=True, metavar="NAME", help="Remove a node. Its jobs go back to the queue."
)
@click.option("--drain-node", "drain_nodes", multiple=True, metavar="NAME", help="Cordon a node. Its jobs stay.")
@click.option("--policy", type=Choice(sorted(POLICIES)), help="Plan with this policy.")
@click.option("--mechanism", type=Choice(sorted(MECHANISMS)), help="Plan with this mechanism.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE",
    help="Change an option: round_s, or a key of a snapshot's config such as colocation or queues.promote_knob.",
)  # fmt: skip
@click.option(
    "--history", metavar="TRACE.csv", help="Draw future arrivals from this trace. The times are medians over the draws."
)
@draw_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def what_if_command(
    *,
    snapshot: str | None,
    history: str | None,
    draws: int,
    seed: int,
    horizon_s: float | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Compare two futures of a snapshot, or of the cluster if none is given: as it is, and with a change."""
    change = _change(how)
    live = {name: how[name] for name in ("filename", "kubeconfig", "context", "namespace")}
    if snapshot is None:
        state, jobs = _live(live)
        change = replace(change, add_jobs=[*change.add_jobs, *jobs])
    else:
        given = next((name for name, value in live.items() if value is not None), None)
        if given is not None:
            raise BadInputError(f"--{given}: a snapshot has no cluster; leave out {snapshot}, or use --add-job")
        state = read_snapshot(snapshot)
    past: Sequence[PastJob] = () if history is None else history_of(history)
    started = time.perf_counter()
    with field_errors(), collector_paused():
        as_is, other = what_if(state, change, past, draws=draws, seed=seed, horizon_s=horizon_s)
    seconds = time.perf_counter() - started
    if as_json:
        click.echo(json.dumps(document(as_is, other, seconds=seconds)))
    else:
        click.echo(what_if_text(as_is, other, state.now))


def _live(given: dict[str, str | None]) -> tuple[Snapshot, list[Job]]:
    """The cluster now, and the job of `--filename`."""
    try:
        from synergy_cli.live.what_if import ask_cluster  # noqa: PLC0415 - a snapshot needs no client
    except ModuleNotFoundError as error:
        message = f"what-if without a SNAPSHOT.json needs {error.name}: install kube-synergy[cli]"
        raise click.ClickException(message) from error
    return ask_cluster(**given)


def _change(how: dict[str, Any]) -> Change:
    config: dict[str, Any] = {}
    for text in how["settings"]:
        key, value = _pair("--set", text)
        try:
            config[key] = json.loads(value)
        except ValueError:
            config[key] = value
    config |= {name: how[name] for name in ("policy", "mechanism") if how[name] is not None}
    nodes: dict[str, int] = {}
    for text in how["add_nodes"]:
        name, count = _pair("--add-nodes", text)
        if not count.isdecimal() or not 0 < int(count) <= 100_000:
            raise BadInputError(f"--add-nodes: {text!r} needs a count from 1 to 100000 after the =")
        nodes[name] = int(count)
    return Change(
        add_jobs=[_job(name) for name in how["add_jobs"]],
        add_nodes=nodes,
        remove_nodes=how["remove_nodes"],
        drain_nodes=how["drain_nodes"],
        config=config,
    )


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise BadInputError(f"{option}: {text!r} has no =; write NAME=VALUE")
    return key, value


def _job(name: str) -> Job:
    try:
        return _JOB.validate_json(read_input(name, "--add-job"))
    except ValidationError as error:
        raise BadInputError(
            f"--add-job: {name}: {one_line(error.errors()[0], whole='job', known=_JOB_FIELDS)}"
        ) from None
