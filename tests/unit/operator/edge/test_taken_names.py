"""The name of a pod or Job that is to be made is taken: by this job, by an earlier one, by somebody else."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from support.operator.owners import no_owners, no_warnings
from support.operator.profile_world import asking, give_place
from support.operator.world import World
from synergy_api.names import LABEL_JOB
from synergy_api.parts.service import ServiceStatus
from synergy_kube import Conflict
from synergy_kube.resources import PODS, Resource
from synergy_operator.actions import CreateJob, CreatePod
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.executor import Executor
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.job.reconcile import reconcile
from synergy_operator.views.refusals import Refusals

Creation = CreatePod | CreateJob


class Server:
    """Has one object of each name already: what `changed` makes of the one that is to be created."""

    def __init__(self, **changed: Any) -> None:
        self.changed = changed

    async def create(self, resource: Resource, body: Mapping[str, Any], _: str) -> dict[str, Any]:
        raise Conflict(409, "AlreadyExists", f'{resource.plural} "{body["metadata"]["name"]}" already exists')

    async def get(self, resource: Resource, name: str, _: str) -> dict[str, Any]:
        return there(resource, name, **self.changed)


class Desk:
    """An executor and what it remembers."""

    def __init__(self, server: Server) -> None:
        self.refusals, self.pods, self.batch_jobs = RefusalLog(), OwnedCache[Any](), OwnedCache[Any]()
        parts = SimpleNamespace(
            refusals=self.refusals, warnings=no_warnings(server), events=EventQueue(asyncio.Event())
        )
        kept = SimpleNamespace(jobs=JobCache(), pods=self.pods, batch_jobs=self.batch_jobs)
        self.executor = Executor(
            server, clock=lambda: 0.0, owners=no_owners(server), wake=lambda _: None, **vars(kept), **vars(parts)
        )

    def known(self, world: World) -> list[str]:
        return [item.name for cache in (self.pods, self.batch_jobs) for item in cache.of_job(world.view.key)]


def there(resource: Resource, name: str, *, labels: Mapping[str, str], owner: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": "theirs",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": dict(labels),
        "ownerReferences": [{"controller": True, "uid": owner}],
    }
    spec = {"containers": [{"name": "c"}]}
    return {"metadata": metadata, "spec": spec if resource is PODS else {"template": {"spec": spec}}}


def pod_to_make() -> tuple[World, Creation]:
    """A job that has its place, and its pod."""
    world = World()
    world.settle()
    world.grant(("n1", 1, 3000, 16))
    return world, _creation(world)


def job_to_make() -> tuple[World, Creation]:
    """A job that has its place to be measured in, and its profile Job."""
    world = asking()
    give_place(world)
    return world, _creation(world)


def _creation(world: World) -> Creation:
    return next(a for a in reconcile(world.observe(), world.now).todo if isinstance(a, CreatePod | CreateJob))


MADE = pytest.mark.parametrize("made", [pod_to_make, job_to_make])


@MADE
async def test_what_is_somebody_elses_is_left_alone_and_the_next_run_takes_other_names(
    made: Callable[[], tuple[World, Creation]],
) -> None:
    world, creation = made()
    desk = Desk(Server(labels={}, owner="somebody"))
    with pytest.raises(TryAgain, match="already exists"):
        await desk.executor.carry_out(world.view, [creation])
    assert desk.known(world) == []
    world.refusals = desk.refusals.of(world.view.key)
    assert world.refusals.run == creation.run
    assert not world.refusals.invalid
    world.settle()
    last = (world.status.service or ServiceStatus()).last
    assert last is not None
    assert (last.outcome, world.status.service and world.status.service.failures) == ("Evicted", 0)
    assert f'"{creation.manifest["metadata"]["name"]}" already exists' in last.reason
    world.wait(10)
    world.settle()
    world.grant(("n1", 1, 3000, 16), purpose="Train" if made is pod_to_make else "Profile", gpu_type="V100")
    again = _creation(world)
    assert again.run == creation.run + 1
    assert again.manifest["metadata"]["name"] != creation.manifest["metadata"]["name"]


@MADE
async def test_what_an_earlier_job_of_the_name_left_is_waited_for(
    made: Callable[[], tuple[World, Creation]],
) -> None:
    world, creation = made()
    desk = Desk(Server(labels={LABEL_JOB: "job"}, owner="uid of an earlier one"))
    with pytest.raises(TryAgain, match="of an earlier job is still there"):
        await desk.executor.carry_out(world.view, [creation])
    assert desk.refusals.of(world.view.key) == Refusals()
    assert desk.known(world) == []


@MADE
async def test_what_this_job_has_made_already_is_its_own(made: Callable[[], tuple[World, Creation]]) -> None:
    """An answer was lost, or the watch is late."""
    world, creation = made()
    desk = Desk(Server(labels={LABEL_JOB: "job"}, owner=world.view.uid))
    await desk.executor.carry_out(world.view, [creation])
    assert desk.known(world) == [creation.manifest["metadata"]["name"]]
