"""A dashboard over a cluster that the test tells of, with a history in memory and users of its own."""

import asyncio
import math
import sys
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI

from support.api_server.told_client import ToldClient
from support.extender.cluster import NOW
from synergy_dashboard.api.app import api_app
from synergy_dashboard.api.job.events import JobEvents
from synergy_dashboard.api.parts import ApiParts
from synergy_dashboard.api.people import People
from synergy_dashboard.api.reviews import Identity
from synergy_dashboard.api.what_if import Futures
from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Sample, Usage, UseSample, WaitFact
from synergy_dashboard.live.cluster import LiveCluster
from synergy_kube import NotFound, Resource
from synergy_kube.answers import Page


@dataclass
class MemoryHistory:
    """A history that the test fills."""

    all_jobs: list[JobFact] = field(default_factory=list)
    all_runs: list[RunFact] = field(default_factory=list)
    all_resizes: list[ResizeFact] = field(default_factory=list)
    all_waits: list[WaitFact] = field(default_factory=list)
    all_samples: list[Sample] = field(default_factory=list)
    all_use: list[UseSample] = field(default_factory=list)
    all_usage: list[Usage] = field(default_factory=list)
    broken: Exception | None = None

    def _of(self, namespaces: Collection[str] | None) -> dict[str, JobFact]:
        if self.broken is not None:
            raise self.broken
        return {job.uid: job for job in self.all_jobs if namespaces is None or job.namespace in namespaces}

    def job(self, namespace: str, name: str) -> JobFact | None:
        """The newest job of that name."""
        found = [job for job in self._of(None).values() if (job.namespace, job.name) == (namespace, name)]
        return max(found, key=lambda job: job.created_s, default=None)

    def jobs(
        self,
        since_s: float,
        until_s: float,
        namespaces: Collection[str] | None,
        most: int,
        after: JobFact | None = None,
    ) -> Sequence[JobFact]:
        """Jobs that were created, by creation and uid: the first `most`, or those that follow `after`."""
        places = {(job.created_s, job.uid): job for job in self._of(namespaces).values()}
        first = (since_s, "") if after is None else (after.created_s, after.uid)
        return [places[place] for place in sorted(places) if first < place < (until_s, "")][:most]

    def runs(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, RunFact]]:
        """Runs that held GPUs, by their grant."""
        jobs = self._of(namespaces)
        there = [run for run in self.all_runs if run.uid in jobs and run.granted_s < until_s]
        held = [run for run in there if run.ended_s is None or run.ended_s >= since_s]
        last = sorted(held, key=lambda run: -(run.ended_s or math.inf))[:most]
        return [(jobs[run.uid], run) for run in sorted(last, key=lambda run: run.granted_s)]

    def runs_of(self, uid: str) -> Sequence[RunFact]:
        """All runs of a job, by number."""
        return [run for run in self.all_runs if run.uid == uid]

    def resizes_of(self, uid: str) -> Sequence[ResizeFact]:
        """By time."""
        return [one for one in self.all_resizes if one.uid == uid]

    def resizes(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, ResizeFact]]:
        """By time."""
        jobs = self._of(namespaces)
        there = [one for one in self.all_resizes if one.uid in jobs and since_s <= one.at_s < until_s]
        return [(jobs[one.uid], one) for one in sorted(there, key=lambda one: one.at_s)[-most:]]

    def resized(self, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Collection[str]:
        """Jobs of which a run was resized."""
        return {job.uid for job, _ in self.resizes(since_s, until_s, namespaces, sys.maxsize)}

    def waits_of(self, uid: str) -> Sequence[WaitFact]:
        """By time."""
        return [one for one in self.all_waits if one.uid == uid]

    def waits(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, WaitFact]]:
        """Waits that began in that time, by their begin."""
        jobs = self._of(namespaces)
        began = [one for one in self.all_waits if one.uid in jobs and since_s <= one.since_s < until_s]
        return [(jobs[one.uid], one) for one in sorted(began, key=lambda one: one.since_s)[-most:]]

    def samples_of(self, uid: str, most: int = 500) -> Sequence[Sample]:
        """By time."""
        return [one for one in self.all_samples if one.uid == uid][-most:]

    def use(self, since_s: float, until_s: float, most: int = 500) -> Sequence[UseSample]:
        """By time."""
        self._of(None)
        return [one for one in self.all_use if since_s <= one.at_s < until_s][-most:]

    def usage(self, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Sequence[Usage]:
        """By tenant and namespace."""
        return [one for one in self.all_usage if namespaces is None or one.namespace in namespaces]

    def first_s(self, namespaces: Collection[str] | None = None) -> float | None:
        """Since when the history is kept."""
        return min((job.created_s for job in self._of(namespaces).values()), default=None)


class FakeReviewer:
    """Tokens are names of users; `sees` has the namespaces of each, `*` for all. `error` is raised instead."""

    def __init__(self, **sees: set[str]) -> None:
        self.sees = sees
        self.error: Exception | None = None

    async def identify(self, token: str, peer: str) -> Identity | None:
        """Whose token it is."""
        if self.error is not None:
            raise self.error
        return Identity(token) if token in self.sees else None

    async def may_see(self, user: Identity, namespace: str | None, refusal_s: float = 0.0) -> bool:
        """Whether the user may get TrainingJobs."""
        if self.error is not None:
            raise self.error
        own = {name for name in (user.name, *user.groups) if name in self.sees}
        return any({"*", namespace} & self.sees[name] - {None} for name in own)


class AskedClient(ToldClient):
    """Gives single objects as well."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: Exception | None = None

    async def page(self, resource: Resource, namespace: str | None = None, **more: Any) -> Page:
        """The newest `holds` of the namespace."""
        items = self._listed[resource]
        self._listed[resource] = [
            one for one in items if namespace is None or one["metadata"].get("namespace") == namespace
        ]
        try:
            return await super().page(resource, namespace, **more)
        finally:
            self._listed[resource] = items

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> dict[str, Any]:
        """The object as the last list had it."""
        if self.broken is not None:
            raise self.broken
        for item in self._listed[resource]:
            if (item["metadata"]["name"], item["metadata"].get("namespace")) == (name, namespace):
                return dict(item)
        raise NotFound(404, "NotFound", f"{name} not found")


@dataclass
class World:
    """The parts, and the application over them."""

    client: AskedClient
    live: LiveCluster
    history: MemoryHistory
    reviewer: FakeReviewer
    app: FastAPI

    def http(self, user: str = "admin") -> httpx.AsyncClient:
        """A client with that user's token."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {user}"} if user else {}
        return httpx.AsyncClient(transport=transport, base_url="http://dashboard", headers=headers)

    async def get(self, path: str, user: str = "admin", status: int = 200) -> Any:
        """The answer of the API, which must have that status."""
        async with self.http(user) as http:
            answer = await http.get(f"/api/v1/{path}")
        assert answer.status_code == status, answer.text
        return answer.json()


@asynccontextmanager
async def dashboard(
    client: AskedClient | None = None, *, synced: bool = True, futures: Futures | None = None, **options: Any
) -> AsyncIterator[World]:
    """A dashboard that follows the client. `admin` sees everything, `ann` namespace team, `bob` nothing."""
    client = client or AskedClient()
    live, history = LiveCluster(client, lambda: NOW), MemoryHistory()
    reviewer = FakeReviewer(admin={"*"}, ann={"team"}, bob=set())
    people = People(reviewer, lambda: live.past_namespaces, options.pop("proxy_secret", None))
    events = JobEvents(client, time.monotonic)
    parts = ApiParts(live, history, client, people, futures or Futures(None), events, "0.0.0")
    following = asyncio.create_task(live.run())
    try:
        if synced:
            await asyncio.wait_for(live.wait_synced(), 10)
        yield World(client, live, history, reviewer, api_app(parts, **options))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
