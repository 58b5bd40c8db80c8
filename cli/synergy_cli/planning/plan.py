"""`kube-synergy plan`: one call of the planner on a file."""

import json
import time
from typing import Any

import click

from synergy_cli.errors import BadInputError, bad_options
from synergy_cli.files import in_file, read_input
from synergy_cli.options.policy import config_of, given, own_policy, policy_options
from synergy_cli.planning.plan_table import plan_text
from synergy_core.collector import collector_paused
from synergy_core.model.config import PlanConfig
from synergy_core.model.config.format import config_of_document, split_config
from synergy_core.model.names import nearest
from synergy_core.model.snapshot import FieldError, Snapshot
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot, plan_document
from synergy_core.plan import plan
from synergy_core.policies.rounds.time_shares import NAMES as TIME_SHARES


@click.command("plan")
@click.argument("snapshot", metavar="SNAPSHOT.json")
@policy_options("plan")
@click.option("--fill", is_flag=True, help="Only give free capacity to waiting jobs. Running jobs stay.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def plan_command(*, snapshot: str, fill: bool, as_json: bool, **how: Any) -> None:
    """Plan a cluster whose state is in a file (- for standard input): which jobs run, their nodes, CPU and memory."""
    own_policy("--policy", how["policy"])
    try:
        state = parse_snapshot(read_input(snapshot, "SNAPSHOT.json"))
        base = config_of_document(split_config(state.config)[0], PlanConfig(mode="fill" if fill else "round"))
    except (SnapshotError, FieldError) as error:
        raise BadInputError(in_file(snapshot, error)) from error
    config = config_of(given(how) if state.config else how, base)
    policy = config.policy
    for option, asked in (("--agnostic", not config.aware), ("--placement-sensitive", config.placement_sensitive)):
        if asked and policy not in TIME_SHARES and config.colocation != "gavel":
            raise BadInputError(f"{option}: {policy} has no such variant; leave it out")
    if policy == "hierarchical":
        _check_tenants(snapshot, state)
    started = time.perf_counter()
    with bad_options(), collector_paused():
        result = plan(state, config)
    seconds = time.perf_counter() - started
    click.echo(json.dumps(plan_document(result, seconds=seconds)) if as_json else plan_text(result, seconds=seconds))


def _check_tenants(source: str, state: Snapshot) -> None:
    """Raise BadInputError for a tenant that is not among those that the snapshot names, if it names any."""
    named = {tenant.name for tenant in state.tenants}
    for index, job in enumerate(state.jobs):
        if named and job.tenant and job.tenant not in named:
            meant = nearest(job.tenant, named)
            suggestion = "" if meant is None else f"did you mean {meant!r}? "
            problem = f"{job.tenant!r} is not in tenants; {suggestion}add it there or leave it out here"
            raise BadInputError(in_file(source, f"jobs[{index}].tenant: {problem}"))
