"""Before a gang is taken back for not being whole, the API server is asked: the watch may be late."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from support.operator.owners import no_owners, no_warnings
from support.operator.world import World
from synergy_kube import NotFound
from synergy_operator.actions import Actions, ApplyStatus, ConfirmUnbound, DeletePod
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.executor import Executor
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.job.reconcile import reconcile
from synergy_operator.views.pod import PodView, read_pod


class Server:
    """Knows of one pod what the watch has not brought, and does nothing but tell it."""

    def __init__(self, pod: dict[str, Any] | None) -> None:
        self.pod = pod

    async def get(self, *_: object) -> dict[str, Any]:
        if self.pod is None:
            raise NotFound(404, "NotFound", "no such pod")
        return self.pod


def too_late() -> tuple[World, Actions]:
    """A gang of which worker 1 is not bound 30 s after worker 0, and what is to be done."""
    world = World(gpus=2, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    world.settle()
    world.bind("job-1-0")
    world.settle()
    world.wait(30)
    return world, reconcile(world.observe(), world.now)


def executor(server: Server, pods: OwnedCache[PodView]) -> Executor:
    parts = SimpleNamespace(refusals=RefusalLog(), warnings=no_warnings(server), events=EventQueue(asyncio.Event()))
    return Executor(
        server,
        jobs=JobCache(),
        pods=pods,
        batch_jobs=OwnedCache(),
        clock=lambda: 0.0,
        owners=no_owners(server),
        wake=lambda _: None,
        **vars(parts),
    )


def test_it_is_asked_before_anything_is_written_or_deleted() -> None:
    _, actions = too_late()
    assert [type(action) for action in actions.todo[:2]] == [ConfirmUnbound, ApplyStatus]
    assert actions.todo[0].name == "job-1-1"
    assert {action.name for action in actions.todo if isinstance(action, DeletePod)} == {"job-1-0", "job-1-1"}


async def test_a_gang_that_is_whole_by_now_goes_on() -> None:
    """Nothing is written or deleted (the server could not), and the next look sees the pod bound."""
    world, actions = too_late()
    pods: OwnedCache[PodView] = OwnedCache()
    late = world.pods["job-1-1"]
    pods.keep(read_pod(late))
    bound = {**late, "spec": {**late["spec"], "nodeName": "n1"}}
    bound["metadata"] = {**late["metadata"], "resourceVersion": "1000"}
    with pytest.raises(TryAgain, match="bound or replaced"):
        await executor(Server(bound), pods).carry_out(world.view, actions.todo)
    (known,) = pods.of_job(world.view.key)
    assert known.node == "n1"


async def test_a_late_worker_that_is_gone_is_forgotten_and_the_job_looked_at_anew() -> None:
    world, actions = too_late()
    pods: OwnedCache[PodView] = OwnedCache()
    pods.keep(read_pod(world.pods["job-1-1"]))
    with pytest.raises(TryAgain, match="is gone"):
        await executor(Server(None), pods).carry_out(world.view, actions.todo)
    assert list(pods.of_job(world.view.key)) == []
