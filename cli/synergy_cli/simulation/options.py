"""Options of the simulator's own, and what they make together with the policy options."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from synergy_cli.errors import BadInputError
from synergy_cli.numbers import Seconds, Within
from synergy_cli.options.policy import config_of, own_policy
from synergy_cli.options.sharing import mode_of
from synergy_cli.simulation.checks import check_window
from synergy_cli.simulation.values import as_tenants, as_window
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import PlanConfig
from synergy_core.model.names import not_there
from synergy_core.policies.rounds.time_shares import WITH_PAIRS
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.rounds.foreseen import SHARES_TIME

_BASE = PlanConfig(explain=False)
_OWN = (
    *("round_s", "measure", "until_measured_done", "start_overhead_s", "preemption_overhead_s"),
    *("storage_bytes_per_s", "measured_types", "profiling_s", "tenants"),
)
"""Parameters of `run_options` that are fields of the simulator's `Options`."""


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How it is simulated."""
    seconds = Seconds(min=0)
    for option in reversed(
        (
            click.option("--round", "round_s", default=300.0, show_default=True, type=Seconds(min=0, min_open=True)),
            click.option(
                "--measure",
                callback=as_window,
                metavar="A:B",
                help="Range of jobs, by arrival, that the figures measure.",
            ),
            click.option("--until-measured-done", is_flag=True, help="Stop when the measured jobs have finished."),
            click.option(
                "--start-overhead",
                "start_overhead_s",
                default=0.0,
                type=seconds,
                help="Seconds before a job's first step.",
            ),
            click.option(
                "--preemption-overhead",
                "preemption_overhead_s",
                default=0.0,
                type=seconds,
                help="Seconds lost each time a job resumes.",
            ),
            click.option(
                "--storage-bandwidth",
                "storage_bytes_per_s",
                type=Within(min=1),
                metavar="BYTES/S",
                help="Each preemption also writes and reads the job's checkpoint_bytes at this speed.",
            ),
            click.option(
                "--profiling-overhead",
                "profiling_s",
                default=0.0,
                type=seconds,
                help="Seconds that each job's profile run takes on its GPUs.",
            ),
            click.option(
                "--measured-types",
                type=click.IntRange(1),
                metavar="N",
                help="The planner knows each model's speed on N GPU types only and estimates the others. "
                "Runs there teach it.",
            ),
            click.option("--no-fill", is_flag=True, help="Leave GPUs that become free idle until the round ends."),
            click.option(
                "--sharing",
                is_flag=True,
                help="Let two jobs share a GPU of any pool by the policy's own pairs: --colocation gavel.",
            ),
            click.option(
                "--tenant",
                "tenants",
                multiple=True,
                callback=as_tenants,
                metavar="NAME=WEIGHT[:POLICY]",
                help="hierarchical: weight of a tenant, and fairness or fifo among its jobs; may be repeated.",
            ),
        )
    ):
        command = option(command)
    return command


def options_of(how: Mapping[str, Any], *, jobs: int, record: bool = False, many: bool = False) -> Options:
    """Check and gather how to simulate. `many`: policy and mechanism are some of those that options list.

    Raises:
        BadInputError: one line that names the option.
    """
    policies, mechanisms = ("--policies", "--mechanisms") if many else ("--policy", "--mechanism")
    own_policy(policies, how["policy"])
    if how["mechanism"] not in MECHANISMS:
        raise BadInputError(f"{mechanisms}: {not_there(how['mechanism'], sorted(MECHANISMS))}")
    mode = mode_of(how["colocation"])
    if how["sharing"] and mode != "none":
        raise BadInputError(f"--sharing: means --colocation gavel, and --colocation is {mode}; give one of them")
    mode = "gavel" if how["sharing"] else mode
    config = config_of({**how, "colocation": mode}, _BASE)
    _check_variants(config, sharing=how["sharing"], policies=policies)
    if how["measured_types"] is not None and mode != "none":
        raise BadInputError("--measured-types: jobs that share a GPU need all their matrices; leave one of the two out")
    if how["tenants"] and config.policy != "hierarchical":
        raise BadInputError(f"--tenant: {config.policy} knows no tenants; leave it out or use --policy hierarchical")
    if how["measure"] is not None:
        check_window("--measure", how["measure"], jobs)
    if how["until_measured_done"] and how["measure"] is None:
        raise BadInputError("--until-measured-done: needs --measure A:B, which says whose end to wait for")
    own = {name: how[name] for name in _OWN}
    return Options(plan=config, fill=not how["no_fill"], record=record, **own)


def _check_variants(config: PlanConfig, *, sharing: bool, policies: str) -> None:
    """Raise BadInputError if a policy lacks the requested variant."""
    policy, mode = config.policy, config.colocation
    without_pairs = mode == "gavel" and policy not in WITH_PAIRS
    for option, asked in (
        ("--sharing", sharing and without_pairs),
        ("--colocation", without_pairs),
        ("--placement-sensitive", config.placement_sensitive and policy not in SHARES_TIME),
        ("--agnostic", not config.aware and mode != "gavel" and policy not in SHARES_TIME),
    ):
        if asked:
            other = f"choose another policy, for example {policies} max-min-fairness"
            raise BadInputError(f"{option}: {policy} has no such variant; leave it out, or {other}")
