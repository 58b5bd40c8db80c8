"""`kube-synergy plan`: one call of the planner on a file."""

import json
import time
from typing import Any, get_args

import click

from synergy_cli.errors import BadInputError, bad_options
from synergy_cli.files import read_input
from synergy_cli.plan_table import plan_text
from synergy_cli.queue_options import queue_options, queues_of
from synergy_cli.sharing_options import mode_of, predictors_of, sharing_options
from synergy_core.collector import collector_paused
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import EstimateMode, PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot, plan_document
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import NAMES as TIME_SHARES

_DEFAULTS = PlanConfig()


@click.command("plan")
@click.argument("snapshot", metavar="SNAPSHOT.json")
@click.option(
    "--policy", default=_DEFAULTS.policy, show_default=True, help=f"Who should run: {', '.join(sorted(POLICIES))}."
)
@click.option(
    "--mechanism",
    default=_DEFAULTS.mechanism,
    show_default=True,
    help=f"How CPU and memory are dealt out: {', '.join(sorted(MECHANISMS))}.",
)
@click.option("--fill", is_flag=True, help="Only give free capacity to waiting jobs; running jobs stay.")
@click.option("--agnostic", is_flag=True, help="Policies do not see that GPU types differ in speed.")
@click.option(
    "--placement-sensitive",
    is_flag=True,
    help="Policies over GPU types see what a job keeps of its speed on many nodes.",
)
@click.option(
    "--estimate",
    default=_DEFAULTS.estimate,
    show_default=True,
    type=click.Choice(get_args(EstimateMode)),
    help="GPU types for which a job without a matrix there gets its measured or an estimated speed: those that its "
    "gpu_types names, all that it may use, or none.",
)
@queue_options
@sharing_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else there.")
def plan_command(
    *,
    snapshot: str,
    policy: str,
    mechanism: str,
    fill: bool,
    agnostic: bool,
    placement_sensitive: bool,
    estimate: EstimateMode,
    as_json: bool,
    colocation: str,
    colocation_model: tuple[str, ...],
    **queues: Any,
) -> None:
    """Plan a cluster whose state is in a file (- for standard input): who runs where, with how much CPU and memory."""
    if agnostic and policy not in TIME_SHARES:
        raise BadInputError(f"--agnostic: {policy} has no such variant; leave it out")
    if placement_sensitive and policy not in TIME_SHARES:
        raise BadInputError(f"--placement-sensitive: {policy} has no such variant; leave it out")
    config = PlanConfig(
        policy=policy,
        mechanism=mechanism,
        mode="fill" if fill else "round",
        queues=queues_of(**queues),
        aware=not agnostic,
        placement_sensitive=placement_sensitive,
        estimate=estimate,
        colocation=mode_of(colocation),
        predictors=predictors_of(colocation_model, mode_of(colocation)),
    )
    try:
        state = parse_snapshot(read_input(snapshot, "SNAPSHOT.json"))
    except SnapshotError as error:
        raise BadInputError(str(error)) from error
    if policy == "hierarchical":
        _check_tenants(state)
    started = time.perf_counter()
    with bad_options(), collector_paused():
        result = plan(state, config)
    seconds = time.perf_counter() - started
    click.echo(json.dumps(plan_document(result, seconds=seconds)) if as_json else plan_text(result, seconds=seconds))


def _check_tenants(state: Snapshot) -> None:
    """Raise BadInputError for a tenant that is not among those that the snapshot names, if it names any."""
    named = {tenant.name for tenant in state.tenants}
    for index, job in enumerate(state.jobs):
        if named and job.tenant and job.tenant not in named:
            raise BadInputError(
                f"jobs[{index}].tenant: {job.tenant!r} is not in tenants; add it there or leave it out here"
            )
