"""`kube-synergy bench`: how fast the parts are, each beside a reference measured in the same run."""

import click

from synergy_cli.bench.iterate import iterate_command
from synergy_cli.bench.pairs.command import pairs_command
from synergy_cli.bench.planner.command import planner_command
from synergy_cli.lazy import LazyCommand, LazyGroup


class _Benchmarks(LazyGroup):
    lazy = {
        "client": LazyCommand("synergy_cli.bench.client.command", "client_command", "kube"),
        "e2e": LazyCommand("synergy_cli.bench.e2e.command", "e2e", "devcluster"),
        "forecast": LazyCommand("synergy_cli.bench.forecast", "forecast_command", "sim"),
        "modelling": LazyCommand("synergy_cli.bench.modelling", "modelling_command", "solver"),
        "simulator": LazyCommand("synergy_cli.bench.simulator", "simulator_command", "sim"),
        "solver": LazyCommand("synergy_cli.bench.solver", "solver_command", "solver"),
        "start": LazyCommand("synergy_cli.bench.start", "start", "kube"),
        "verbs": LazyCommand("synergy_cli.bench.verbs", "verbs_command", "extender"),
    }


@click.group(cls=_Benchmarks)
def bench() -> None:
    """Run benchmarks. Each one also measures a reference to compare with."""


bench.add_command(iterate_command, "iterate")
bench.add_command(pairs_command)
bench.add_command(planner_command)
