"""`kube-synergy forecast` and `what-if`: what a cluster whose state is in a file will do."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.files import in_file, read_input
from synergy_cli.numbers import Seconds
from synergy_cli.text_table import text_table
from synergy_core.collector import collector_paused
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.snapshot import FieldError, Job, PastJob, Snapshot
from synergy_core.model.snapshot_format import SnapshotError, one_line, parse_snapshot
from synergy_core.policies import POLICIES
from synergy_simulator.forecast.forecast import Forecast, Forecaster
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.quantiles import Quantiles
from synergy_simulator.forecast.what_if import Change, Future, document, what_if
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.traces import TraceJob, read_trace

_JOB = TypeAdapter(Job)
_JOB_FIELDS = [one.name for one in fields(Job)]


def draw_options(command: Any) -> Any:
    """`--draws`, `--seed` and `--horizon`."""
    for option in (
        click.option("--horizon", "horizon_s", type=Seconds(min=1), help="Look so many seconds ahead at the most."),
        click.option("--seed", default=0, show_default=True, type=int, help="Of the draws."),
        click.option(
            "--draws", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Draws of future arrivals."
        ),
    ):
        command = option(command)
    return command


@click.command("forecast")
@click.argument("snapshot", metavar="SNAPSHOT.json")
@click.option(
    "--history", metavar="TRACE.csv", help="Draw arrivals from this trace in place of the snapshot's history."
)
@draw_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else there.")
def forecast_command(
    *, snapshot: str, history: str | None, draws: int, seed: int, horizon_s: float | None, as_json: bool
) -> None:
    """When each job of a snapshot (- for standard input) starts and ends, with and without future arrivals."""
    state = read_snapshot(snapshot)
    past = None if history is None else history_of(history)
    started = time.perf_counter()
    with field_errors(), collector_paused():
        found = Forecaster(state, options_of_snapshot(state), past, horizon_s=horizon_s).forecast(draws, seed)
    seconds = time.perf_counter() - started
    if as_json:
        click.echo(json.dumps(found.document(seconds=seconds)))
    else:
        click.echo(_forecast_text(found, seconds))


@click.command("what-if")
@click.argument("snapshot", metavar="[SNAPSHOT.json]", required=False)
@click.option("-f", "--filename", help="This TrainingJob (YAML, - for standard input) comes to the cluster.")
@click.option("--kubeconfig", help="File that names the cluster.  [default: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", help="Context of that file.")
@click.option("-n", "--namespace", help="Namespace of the TrainingJob.  [default: the context's]")
@click.option("--add-job", "add_jobs", multiple=True, metavar="JOB.json", help="One element of a snapshot's jobs.")
@click.option(
    "--add-nodes", multiple=True, metavar="POOL=COUNT", help="So many nodes like those of a pool, GPU type or name."
)
@click.option("--remove-node", "remove_nodes", multiple=True, metavar="NAME", help="The node goes, its jobs wait.")
@click.option("--drain-node", "drain_nodes", multiple=True, metavar="NAME", help="Nothing new comes to the node.")
@click.option("--policy", type=Choice(sorted(POLICIES)), help="Another policy.")
@click.option("--mechanism", type=Choice(sorted(MECHANISMS)), help="Another mechanism.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE",
    help="Another option: round_s, or a key of a snapshot's config such as colocation or queues.promote_knob.",
)  # fmt: skip
@click.option("--history", metavar="TRACE.csv", help="With arrivals drawn from this trace; the times are medians.")
@draw_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else there.")
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
    """What a change would do to the jobs of a snapshot, or without one of the cluster: two futures side by side."""
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


def read_snapshot(source: str) -> Snapshot:
    """The snapshot of a file. Raises BadInputError naming its first bad field."""
    try:
        return parse_snapshot(read_input(source, "SNAPSHOT.json"))
    except SnapshotError as error:
        raise BadInputError(in_file(source, error)) from error


@contextmanager
def field_errors() -> Iterator[None]:
    """Turn what is wrong with a field into bad input that names it, and a library that is missing into one line."""
    try:
        yield
    except FieldError as error:
        raise BadInputError(f"{error.path}: {error.problem}") from error
    except ModuleNotFoundError as error:
        raise click.ClickException(f"the policy needs {error.name}: install kube-synergy[sim]") from error


def history_of(name: str) -> list[PastJob]:
    """The jobs of a trace as past arrivals. Raises BadInputError naming file, line and field."""
    try:
        return [_past(job) for job in read_trace(Path(name))]
    except InputError as error:
        raise BadInputError(str(error)) from error


def _past(job: TraceJob) -> PastJob:
    finish = None if job.duration_s is None else job.arrival_s + job.duration_s
    steps = None if job.steps is None else float(job.steps)
    return PastJob(arrival_s=job.arrival_s, gpus=job.gpus, model=job.model or "", steps=steps, finish_s=finish)


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


def _forecast_text(found: Forecast, seconds: float) -> str:
    rows = [
        [one.job, one.state, *_range(one.start, found.now), *_range(one.finish, found.now), one.unknown or ""]
        for one in found.jobs
    ]
    header = ["JOB", "STATE", "START IN", "80 %", "END IN", "80 %", "UNKNOWN"]
    by = f"{found.draws} draws of arrivals" if found.draws else "no arrivals: there is no history"
    return f"{text_table(header, rows)}\n{by}, {seconds:.1f} s" if rows else f"no job; {by}"


def _range(one: Quantiles, now: float) -> tuple[str, str]:
    return _ahead(one.p50, now), "" if one.is_point else f"{_ahead(one.p10, now)} to {_ahead(one.p90, now)}"


def _ahead(moment: float, now: float) -> str:
    if moment == inf:
        return "beyond"
    seconds = moment - now
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def what_if_text(as_is: Future, other: Future, now: float) -> str:
    """Both futures as tables: the sums, and the jobs for which something changes."""
    sums = [
        ["average JCT", f"{as_is.avg_jct_s / 3600:.2f} h", f"{other.avg_jct_s / 3600:.2f} h"],
        ["makespan", f"{as_is.makespan_s / 3600:.2f} h", f"{other.makespan_s / 3600:.2f} h"],
        ["GPUs in use", f"{as_is.gpu_utilization:.0%}", f"{other.gpu_utilization:.0%}"],
    ]
    never = (inf, inf)
    rows = [
        [
            name,
            *(_ahead(one.times.get(name, never)[0], now) for one in (as_is, other)),
            *(_ahead(one.times.get(name, never)[1], now) for one in (as_is, other)),
        ]
        for name in sorted(as_is.times.keys() | other.times.keys())
        if as_is.times.get(name) != other.times.get(name)
    ]
    header = ["JOB", "START AS IS", "WHAT IF", "END AS IS", "WHAT IF"]
    jobs = text_table(header, rows) if rows else "no job starts or ends at another time"
    return f"{text_table(['', 'AS IS', 'WHAT IF'], sums)}\n\n{jobs}"
