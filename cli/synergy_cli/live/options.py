"""Options that live commands share, named as kubectl names them."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from synergy_cli.choice import Choice
from synergy_cli.live.access import where_of
from synergy_cli.live.completion import complete_contexts, complete_jobs, complete_namespaces

F = TypeVar("F", bound=Callable[..., Any])

OUTPUTS = ("table", "wide", "json", "yaml")


def cluster_options(*, everywhere: bool = False) -> Callable[[F], F]:
    """`--kubeconfig`, `--context`, `-n` and, with `everywhere`, `-A`. The command gets them as one `where`."""

    def decorate(function: F) -> F:
        @wraps(function)
        def command(
            *args: Any,
            kubeconfig: str | None,
            context: str | None,
            namespace: str | None,
            all_namespaces: bool = False,
            **more: Any,
        ) -> Any:
            return function(*args, where=where_of(kubeconfig, context, namespace, all_namespaces), **more)

        options = [
            click.option("--kubeconfig", help="Kubeconfig file.  [default: $KUBECONFIG, ~/.kube/config]"),
            click.option("--context", shell_complete=complete_contexts, help="Context of the kubeconfig."),
            click.option(
                "-n", "--namespace", shell_complete=complete_namespaces, help="Namespace.  [default: the context's]"
            ),
        ]
        if everywhere:
            options.append(click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces."))
        decorated: Any = command
        for option in reversed(options):
            decorated = option(decorated)
        found: F = decorated
        return found

    return decorate


def output_option(*, wide: bool = True) -> Callable[[F], F]:
    """`-o`. JSON and YAML have all fields, with times in seconds since the epoch."""
    outputs = OUTPUTS if wide else tuple(name for name in OUTPUTS if name != "wide")
    return click.option("-o", "--output", type=Choice(outputs), default="table", help="Output format.")


def watch_option(function: F) -> F:
    """`-w`."""
    told = "Refresh until Ctrl-C: after two seconds, or five times as long as the answer took."
    return click.option("-w", "--watch", is_flag=True, help=told)(function)


def job_argument(function: F) -> F:
    """The name of a TrainingJob."""
    return click.argument("job", shell_complete=complete_jobs)(function)
