"""`kube-synergy`, also installed as `kubectl-synergy`."""

import click

from synergy_cli.bench import bench
from synergy_cli.lazy import LazyCommand, LazyGroup
from synergy_cli.planning.plan import plan_command
from synergy_cli.planning.solve import solve_command


class _Commands(LazyGroup):
    lazy = {
        "colocation": LazyCommand("synergy_cli.colocation.commands", "colocation", "sim"),
        "compare": LazyCommand("synergy_cli.simulation.compare", "compare_command", "sim"),
        "demo": LazyCommand("synergy_cli.demo.command", "demo", "devcluster"),
        "devcluster": LazyCommand("synergy_devcluster.cli", "devcluster", "devcluster"),
        "gpu": LazyCommand("synergy_cli.gpu.commands", "gpu", "sim"),
        "reproduce": LazyCommand("synergy_cli.simulation.reproduce", "reproduce_command", "sim"),
        "simulate": LazyCommand("synergy_cli.simulation.simulate", "simulate_command", "sim"),
        "trace": LazyCommand("synergy_cli.simulation.trace", "trace_command", "sim"),
    }


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kube-synergy")
def main() -> None:
    """Resource-sensitive scheduling of deep-learning training jobs."""


main.add_command(plan_command)
main.add_command(solve_command)
main.add_command(bench)
