"""Which object a TrainingJob starts and stops, and which pods are its own."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from support.operator.managed_world import JOB, ManagedWorld, managed_job
from support.operator.objects import Json
from synergy_kube import Change
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.managed.owners import SETTLE_SECONDS, Owners, unclaimed
from synergy_operator.edge.trimming import VIEW
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.owners.view import read_owner
from synergy_operator.views.stored_job import store_job

Woken = list[tuple[str, str]]


def owners(woken: Woken, *kinds: str, client: Any = None, clock: Callable[[], float] = lambda: 0.0) -> Owners:
    return Owners(
        client,
        kinds,
        cluster=ClusterView,
        jobs=JobCache(),
        events=EventQueue(asyncio.Event()),
        clock=clock,
        wake=woken.append,
        on_restart=lambda resource, cause: None,
    )


def seen(held: Owners, item: Json | None = None) -> None:
    """The watch shows the Job."""
    item = item or managed_job()
    trimmed = {"metadata": item["metadata"], VIEW: read_owner(JOB, item)}
    held._changed("Job", Change(("team", "j"), None, trimmed))


async def test_a_training_job_has_the_object_that_it_belongs_to_and_no_other() -> None:
    woken: Woken = []
    held, job = owners(woken, "Job"), ManagedWorld().view
    assert held.of(job) is None
    seen(held)
    assert woken == [("team", "job-j")]
    found = held.of(job)
    assert found is not None
    assert found.uid == "uid-j"
    assert held.of(replace(job, controller="")) is None, "nobody made it for the Job"
    assert held.of(replace(job, controller="other")) is None, "it is of an earlier Job"
    assert held.of(replace(job, name="mine")) is None, "a Job has one TrainingJob"


async def test_kinds_that_are_not_managed_have_no_objects() -> None:
    held, job = owners([], "JobSet"), ManagedWorld().view
    held.job_changed(store_job(ManagedWorld().job))
    assert held.of(job) is None


async def test_one_that_goes_or_loses_its_label_is_forgotten() -> None:
    woken: Woken = []
    held, job = owners(woken, "Job"), ManagedWorld().view
    seen(held)
    old = {"metadata": {}, VIEW: held.of(job)}
    held._changed("Job", Change(("team", "j"), old, None))
    assert held.of(job) is None
    assert len(woken) == 2


def test_only_gated_pods_of_the_object_wait_for_a_rank() -> None:
    world = ManagedWorld()
    world.settle()
    world.grant(("n1", 1, 1000, 1), ("n2", 1, 1000, 1))
    world.settle()
    world.control()
    observed = world.observe()
    first, second = observed.unclaimed
    pods = [first, replace(second, managed_by="other"), replace(second, gates=()), replace(second, run=1)]
    assert unclaimed(observed.owner, pods) == (first,)
    assert unclaimed(None, pods) == ()


class Api:
    """Keeps the Job as it is patched, and what is made."""

    def __init__(self, item: Json) -> None:
        self.item = item
        self.made: list[Json] = []

    async def merge_patch(self, _: Any, name: str, body: Json, namespace: str) -> Json:
        assert (name, namespace) == ("j", "team")
        metadata = {**self.item["metadata"], "resourceVersion": str(int(self.item["metadata"]["resourceVersion"]) + 1)}
        self.item = {**self.item, "metadata": metadata, "spec": {**self.item["spec"], **body["spec"]}}
        return self.item

    async def create(self, _: Any, body: Json, namespace: str) -> Json:
        assert namespace == "team"
        self.made.append(body)
        return body


async def test_one_that_ran_is_left_to_settle_before_it_is_planned() -> None:
    now = [100.0]
    api = Api(managed_job(suspend=False))
    held = owners([], "Job", client=api, clock=lambda: now[0])
    seen(held, api.item)
    key = ("Job", "team", "j")
    assert await held._follow(key) == 0.0
    assert api.item["spec"]["suspend"]
    now[0] += 1.0
    assert await held._follow(key) == SETTLE_SECONDS - 1.0, "a condition of an earlier suspension may still stand"
    assert api.made == []
    now[0] += SETTLE_SECONDS
    assert await held._follow(key) is None
    assert [one["kind"] for one in api.made] == ["TrainingJob"]


async def test_one_that_comes_suspended_is_planned_at_once() -> None:
    api = Api(managed_job())
    held = owners([], "Job", client=api)
    seen(held, api.item)
    assert await held._follow(("Job", "team", "j")) is None
    assert len(api.made) == 1
