"""`kube-synergy`, also installed as `kubectl-synergy`."""

import click

from synergy_cli.lazy import LazyCommand, LazyGroup


class _Commands(LazyGroup):
    lazy = {
        "bench": LazyCommand("synergy_cli.bench", "bench", "cli"),
        "plan": LazyCommand("synergy_cli.planning.plan", "plan_command", "cli"),
        "solve": LazyCommand("synergy_cli.planning.solve", "solve_command", "cli"),
        "colocation": LazyCommand("synergy_cli.colocation.commands", "colocation", "sim"),
        "compare": LazyCommand("synergy_cli.simulation.compare", "compare_command", "sim"),
        "demo": LazyCommand("synergy_cli.demo.command", "demo", "devcluster"),
        "devcluster": LazyCommand("synergy_devcluster.cli", "devcluster", "devcluster"),
        "calibrate": LazyCommand("synergy_cli.simulation.calibrate", "calibrate_command", "sim"),
        "forecast": LazyCommand("synergy_cli.planning.forecast", "forecast_command", "sim"),
        "what-if": LazyCommand("synergy_cli.live.cluster.what_if", "what_if_command", "sim"),
        "gpu": LazyCommand("synergy_cli.gpu.commands", "gpu", "sim"),
        "reproduce": LazyCommand("synergy_cli.simulation.reproduce", "reproduce_command", "sim"),
        "simulate": LazyCommand("synergy_cli.simulation.simulate", "simulate_command", "sim"),
        "dashboard": LazyCommand("synergy_cli.live.cluster.dashboard", "dashboard_command", "cli"),
        "doctor": LazyCommand("synergy_cli.live.cluster.doctor", "doctor_command", "cli"),
        "drain": LazyCommand("synergy_cli.live.cluster.drain", "drain_command", "cli"),
        "export": LazyCommand("synergy_cli.live.cluster.export", "export_command", "cli"),
        "history": LazyCommand("synergy_cli.live.jobs.job", "history_command", "cli"),
        "logs": LazyCommand("synergy_cli.live.jobs.job", "logs_command", "cli"),
        "migrate": LazyCommand("synergy_cli.moving.migrate", "migrate_command", "cli"),
        "nodes": LazyCommand("synergy_cli.live.cluster.failing", "nodes_command", "cli"),
        "policy": LazyCommand("synergy_cli.live.cluster.policy", "policy_command", "cli"),
        "profile": LazyCommand("synergy_cli.live.jobs.job", "profile_command", "cli"),
        "queue": LazyCommand("synergy_cli.live.jobs.queue", "queue_command", "cli"),
        "resume": LazyCommand("synergy_cli.live.jobs.submit", "resume_command", "cli"),
        "rounds": LazyCommand("synergy_cli.live.cluster.rounds", "rounds_command", "cli"),
        "submit": LazyCommand("synergy_cli.live.jobs.submit", "submit_command", "cli"),
        "suspend": LazyCommand("synergy_cli.live.jobs.submit", "suspend_command", "cli"),
        "tenants": LazyCommand("synergy_cli.live.cluster.tenants", "tenants_command", "cli"),
        "top": LazyCommand("synergy_cli.live.cluster.top", "top_command", "cli"),
        "usage": LazyCommand("synergy_cli.live.cluster.top", "usage_command", "cli"),
        "when": LazyCommand("synergy_cli.live.jobs.when", "when_command", "cli"),
        "why": LazyCommand("synergy_cli.live.jobs.why", "why_command", "cli"),
        "trace": LazyCommand("synergy_cli.simulation.trace", "trace_command", "sim"),
    }


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kube-synergy")
def main() -> None:
    """Resource-sensitive scheduling of deep-learning training jobs."""


def plugin() -> None:
    """`kubectl-synergy`, which kubectl runs for `kubectl synergy`."""
    main(prog_name="kubectl synergy")
