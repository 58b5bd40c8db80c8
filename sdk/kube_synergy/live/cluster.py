"""A cluster with the user's own rights, found as kubectl finds it."""

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

from kube_synergy.errors import InvalidJobError
from synergy_kube import ApiError, KubeClient, NotFound, Resource
from synergy_kube.credentials import default_namespace
from synergy_kube.resources import TRAINING_JOBS
from synergy_view.seen import SeenJob, Unreadable, read, read_all

Object = dict[str, Any]
_FORBIDDEN = (401, 403)
HIDDEN = (*_FORBIDDEN, 404)
"""Codes for a collection that the user may not list, or that the cluster does not have."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_log = logging.getLogger("kube_synergy")


@dataclass(frozen=True, slots=True)
class Where:
    """The cluster and the namespace of a command; `namespace` None: all namespaces."""

    kubeconfig: str | None
    context: str | None
    namespace: str | None

    @classmethod
    def of(cls, kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None) -> Self:
        """With the context's own namespace where none is given. Raises NoClusterError."""
        return cls(kubeconfig, context, namespace or default_namespace(kubeconfig, context))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client with the user's rights, and the namespace that was asked for. `tell` gets a sentence about what is left
    out of an answer."""

    client: KubeClient
    namespace: str | None
    tell: Callable[[str], None] = _log.warning

    @property
    def own_namespace(self) -> str:
        """The namespace, where a question is about one."""
        assert self.namespace is not None, "the question is about all namespaces"
        return self.namespace

    async def job(self, name: str, uid: str | None = None) -> SeenJob:
        """A TrainingJob of the namespace; with `uid` only that one.

        Raises NotFound, also where a later job has the name.
        """
        found = await self.client.get(TRAINING_JOBS, name, self.own_namespace)
        if uid not in (None, found["metadata"]["uid"]):
            message = f"{self.own_namespace}/{name} was deleted, and another TrainingJob has its name now"
            raise NotFound(404, "NotFound", message)
        return read(found)

    async def jobs(self, namespace: str | None) -> list[SeenJob]:
        """TrainingJobs of a namespace, or of all where it is None; `tell` gets those that cannot be read."""
        found: list[SeenJob] = []
        async for page in self.client.pages(TRAINING_JOBS, namespace):
            jobs, unreadable = read_all(page)
            found += jobs
            for one in unreadable:
                self.tell_unreadable(one)
        return found

    def tell_unreadable(self, job: Unreadable) -> None:
        """Tell that a job is left out."""
        self.tell(f"{job.full_name} is left out, it is of another version: {job.problem}")

    async def visible_jobs(self) -> tuple[list[SeenJob], str]:
        """The TrainingJobs of all namespaces, if the user may list them. Otherwise those of the user's namespace, with
        a note."""
        try:
            return await self.jobs(None), ""
        except ApiError as error:
            if error.code not in _FORBIDDEN or self.namespace is None:
                raise
        note = f"you may not list TrainingJobs of other namespaces: only those of {self.namespace} are considered"
        return await self.jobs(self.namespace), note

    async def items(self, resource: Resource, namespace: str | None = None, **selectors: str) -> list[Object] | None:
        """A collection; None if the user may not list it, or if the cluster does not have it."""
        try:
            listed: list[Object] = (await self.client.list(resource, namespace, **selectors))["items"]
        except ApiError as error:
            if error.code in HIDDEN:
                return None
            raise
        return listed


def check_names(**names: object) -> None:
    """Raises InvalidJobError that names the argument which cannot be the name of an object."""
    for argument, name in names.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidJobError(f"{argument}: {name!r} cannot be one: it has small letters, digits, - and . only")


@asynccontextmanager
async def connected(where: Where, tell: Callable[[str], None] = _log.warning) -> AsyncIterator[Cluster]:
    """The cluster, as long as the block lasts."""
    async with await KubeClient.connect(where.kubeconfig, where.context) as client:
        yield Cluster(client, where.namespace, tell)
