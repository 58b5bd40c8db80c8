"""`kube-synergy bench`: how fast the parts are, each beside a reference measured in the same run."""

import click

from synergy_cli.bench.planner import planner


@click.group()
def bench() -> None:
    """Benchmarks, each beside a reference that is measured in the same run."""


bench.add_command(planner)
