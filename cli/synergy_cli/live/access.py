"""Access to the cluster of a live command: kubeconfig, context and namespace, as in kubectl."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import aiohttp
import click

from kube_synergy.live.cluster import Cluster, Object, Where, connected
from synergy_cli.errors import BadInputError
from synergy_cli.live.output import note
from synergy_kube import ApiError, NoClusterError
from synergy_view.words import printable

__all__ = ["Cluster", "Object", "Where", "ask", "hidden_nodes", "run_online", "where_of"]

T = TypeVar("T")


def ask(where: Where, question: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    """Run `question` against the cluster. An error becomes one line on stderr."""

    async def run() -> T:
        async with connected(where, note) as cluster:
            return await question(cluster)

    return run_online(run)


def run_online(run: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that speaks to an API server, with its errors as one line each."""
    try:
        return asyncio.run(run())
    except NoClusterError as error:
        raise BadInputError(str(error)) from error
    except ApiError as error:
        raise click.ClickException(printable(error.message or str(error))) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise click.ClickException(f"the API server does not answer: {error or 'no answer in time'}") from error
    except ValueError as error:
        raise click.ClickException(printable(str(error))) from error


def where_of(kubeconfig: str | None, context: str | None, namespace: str | None, everywhere: bool) -> Where:
    """The options of a command as one value."""
    if everywhere:
        return Where(kubeconfig, context, None)
    try:
        return Where.of(kubeconfig, context, namespace)
    except NoClusterError as error:
        raise BadInputError(str(error)) from error


def hidden_nodes() -> click.ClickException:
    """The error for users without the right to list nodes."""
    return click.ClickException("you may not list nodes: without them nothing can be simulated")
