"""The way to the cluster that a live command asks: kubeconfig, context and namespace as kubectl has them."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import click

from synergy_cli.errors import BadInputError
from synergy_kube import ApiError, KubeClient, NoClusterError, Resource
from synergy_kube.credentials import default_namespace
from synergy_kube.resources import TRAINING_JOBS
from synergy_view.seen import SeenJob, read, read_all

T = TypeVar("T")
Object = dict[str, Any]
_FORBIDDEN = (401, 403)


@dataclass(frozen=True, slots=True)
class Where:
    """Which cluster, and which of its namespaces; `namespace` None: all of them."""

    kubeconfig: str | None
    context: str | None
    namespace: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client with the user's rights, and the namespace that was asked for."""

    client: KubeClient
    namespace: str | None

    @property
    def own_namespace(self) -> str:
        """The namespace, where a command is about one."""
        assert self.namespace is not None, "the command has no --all-namespaces"
        return self.namespace

    async def job(self, name: str) -> SeenJob:
        """A TrainingJob of the namespace."""
        return read(await self.client.get(TRAINING_JOBS, name, self.own_namespace))

    async def jobs(self, namespace: str | None) -> list[SeenJob]:
        """TrainingJobs of a namespace, or of all where it is None; those that cannot be read are told on stderr."""
        found: list[SeenJob] = []
        async for page in self.client.pages(TRAINING_JOBS, namespace):
            jobs, unreadable = read_all(page)
            found += jobs
            for one in unreadable:
                click.echo(f"note: {one.full_name} is left out, it is of another version: {one.problem}", err=True)
        return found

    async def visible_jobs(self) -> tuple[list[SeenJob], str]:
        """The TrainingJobs of all namespaces where the user may list them, else of the own one with a note that says
        so."""
        try:
            return await self.jobs(None), ""
        except ApiError as error:
            if error.code not in _FORBIDDEN or self.namespace is None:
                raise
        note = f"you may not list TrainingJobs of other namespaces: only those of {self.namespace} are considered"
        return await self.jobs(self.namespace), note

    async def items(self, resource: Resource, namespace: str | None = None, **selectors: str) -> list[Object] | None:
        """A collection; None where the user may not list it, or the cluster does not know it."""
        try:
            listed: list[Object] = (await self.client.list(resource, namespace, **selectors))["items"]
        except ApiError as error:
            if error.code in (*_FORBIDDEN, 404):
                return None
            raise
        return listed


def ask(where: Where, question: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    """Run `question` against the cluster. What goes wrong becomes one line on stderr."""

    async def run() -> T:
        async with await KubeClient.connect(where.kubeconfig, where.context) as client:
            return await question(Cluster(client, where.namespace))

    return run_online(run)


def run_online(run: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that speaks to an API server, with its errors as one line each."""
    try:
        return asyncio.run(run())
    except NoClusterError as error:
        raise BadInputError(str(error)) from error
    except ApiError as error:
        raise click.ClickException(error.message or str(error)) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise click.ClickException(f"the API server does not answer: {error or 'no answer in time'}") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def where_of(kubeconfig: str | None, context: str | None, namespace: str | None, everywhere: bool) -> Where:
    """The options of a command as one value."""
    if everywhere:
        return Where(kubeconfig, context, None)
    try:
        return Where(kubeconfig, context, namespace or default_namespace(kubeconfig, context))
    except NoClusterError as error:
        raise BadInputError(str(error)) from error
