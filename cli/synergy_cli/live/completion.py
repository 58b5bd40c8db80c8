"""Completion of names on the command line: jobs, namespaces and contexts of the user's cluster.

kubectl completes its plugins by running `kubectl_complete-NAME` (`kubectl help plugin`); that program is `main` here.
"""

import asyncio
import sys
from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from synergy_cli.main import main as command
from synergy_kube import KubeClient
from synergy_kube.credentials import contexts, default_namespace
from synergy_kube.resources import NAMESPACES, TRAINING_JOBS

_PATIENCE_S = 2.0
_NO_FILES = 4
"""Cobra's ShellCompDirectiveNoFileComp."""
_DEFAULT = 0


def complete_jobs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of TrainingJobs in the namespace that was given so far."""
    return _named("trainingjobs", ctx, incomplete)


def complete_namespaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of namespaces."""
    return _named("namespaces", ctx, incomplete)


def complete_contexts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the kubeconfig's contexts."""
    with suppress(Exception):
        names = contexts(ctx.params.get("kubeconfig"))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return []


def _named(plural: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    # whatever goes wrong, the shell gets no completion and no traceback
    with suppress(Exception):
        names = asyncio.run(asyncio.wait_for(_names(plural, ctx.params), _PATIENCE_S))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return []


async def _names(plural: str, given: dict[str, Any]) -> list[str]:
    file, context = given.get("kubeconfig"), given.get("context")
    async with await KubeClient.connect(file, context) as client:
        if plural == "namespaces":
            found = await client.versions(NAMESPACES)
        else:
            found = await client.versions(TRAINING_JOBS, given.get("namespace") or default_namespace(file, context))
    return sorted(name for _, name in found)


def main() -> None:
    """`kubectl_complete-synergy WORD... INCOMPLETE`: a candidate in each line, then Cobra's directive."""
    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(command, {}, "kubectl-synergy", "").get_completions(words, incomplete)
    names = [item for item in found if item.type == "plain"]
    for item in names:
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{_NO_FILES if names or not found else _DEFAULT}")
