"""Whatever the API server refuses on a run's way to running pods, the run is given back in the server's words."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from support.operator.owners import no_owners, no_warnings
from support.operator.world import World
from synergy_api.parts.service import RunOutcome
from synergy_api.reasons import Reason, say
from synergy_kube import ApiError, Conflict, NotFound
from synergy_kube.resources import SERVICES, Resource
from synergy_operator.actions import Action, ApplyStatus, CreatePod, EnsureService, UngatePod
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.refusals import TRANSIENT_ERROR_SECONDS, RefusalLog
from synergy_operator.edge.event_queue import EventQueue, Post
from synergy_operator.edge.executor import Executor
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.job.reconcile import reconcile

DENIED = ApiError(403, "Forbidden", 'admission webhook "no.example.com" denied the request: not today')
BROKEN = ApiError(500, "InternalError", 'failed calling webhook "no.example.com": connection refused')
Object = dict[str, Any]


class Server:
    """Answers one verb with an error, and has the Service that it is given. `applied` are the bodies of applies."""

    def __init__(self, failing: str = "", error: Exception | None = None, service: Object | None = None) -> None:
        self.failing, self.error, self.service = failing, error, service
        self.applied: list[Mapping[str, Any]] = []
        self.created: list[Resource] = []

    async def get(self, resource: Resource, name: str, namespace: str) -> Object:
        if self.service is None:
            raise NotFound(404, "NotFound", f'{resource.plural} "{name}" not found')
        return self.service

    async def create(self, resource: Resource, body: Mapping[str, Any], namespace: str) -> Object:
        self._fail(f"create {resource.plural}")
        self.created.append(resource)
        metadata = {"uid": "new", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        return {**body, "metadata": {**body["metadata"], **metadata}}

    async def apply(self, resource: Resource, name: str, body: Mapping[str, Any], *_: str, **__: str) -> Object:
        self._fail(f"apply {resource.plural}")
        self.applied.append(body)
        return dict(body)

    async def merge_patch(self, resource: Resource, name: str, body: Mapping[str, Any], namespace: str) -> Object:
        self._fail(f"patch {resource.plural}")
        raise AssertionError("every patch of these tests is refused")

    def _fail(self, what: str) -> None:
        if what == self.failing and self.error is not None:
            raise self.error


class Edge:
    """An executor in front of a server, with a clock that only the test moves."""

    def __init__(self, server: Server, queue: EventQueue | None = None) -> None:
        self.refusals, self.now = RefusalLog(), 0.0
        caches: dict[str, Any] = {"jobs": JobCache(), "pods": OwnedCache(), "batch_jobs": OwnedCache()}
        self._executor = Executor(
            server,  # type: ignore[arg-type]  # the methods that these tests need
            **caches,
            refusals=self.refusals,
            warnings=no_warnings(server),
            events=queue or EventQueue(asyncio.Event()),
            clock=lambda: 0.0,
            owners=no_owners(server),
            wake=lambda _: None,
            steady=lambda: self.now,
        )

    async def do(self, world: World, *actions: Action) -> None:
        try:
            await self._executor.carry_out(world.view, actions)
        finally:
            world.refusals = self.refusals.of(world.view.key)


def granted() -> World:
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    return world


def gated() -> World:
    world = granted()
    world.carry_out(action for action in world.step().todo if isinstance(action, CreatePod))
    world.step()
    return world


def actions_of(world: World, kind: type[Action]) -> list[Action]:
    found = [action for action in reconcile(world.observe(), world.now).todo if isinstance(action, kind)]
    assert found, f"no {kind.__name__} is due"
    return found


def last_run(world: World) -> RunOutcome:
    assert world.status.service is not None
    assert world.status.service.last is not None
    return world.status.service.last


def service(owner: str | None, **metadata: Any) -> Object:
    owners = [{"kind": "TrainingJob", "name": "job", "uid": owner, "controller": True}] if owner is not None else []
    return {"metadata": {"name": "tj-job", "uid": "s", "ownerReferences": owners, **metadata}, "spec": {}}


STEPS = [
    (granted, EnsureService, "create services", "ServiceRefused"),
    (granted, CreatePod, "create pods", "PodRefused"),
    (gated, UngatePod, "patch pods", "StartRefused"),
]


@pytest.mark.parametrize(("begin", "kind", "request_", "reason"), STEPS)
async def test_a_refused_step_gives_the_run_back_and_the_next_try_waits(
    begin: Any, kind: type[Action], request_: str, reason: str
) -> None:
    world = begin()
    edge = Edge(Server(request_, DENIED))
    with pytest.raises(TryAgain, match="not today"):
        await edge.do(world, *actions_of(world, kind))
    world.settle()
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert (service.ended_run, service.failures, service.refusals) == (1, 0, 1)
    assert last_run(world).outcome == "Evicted"
    assert (world.reason("Running"), world.pod_names()) == (reason, [])
    assert "not today" in world.message("Running")
    assert service.retry_at is not None
    assert world.status.problem is not None
    assert world.status.problem.reason == reason


@pytest.mark.parametrize(("begin", "kind", "request_", "reason"), STEPS)
@pytest.mark.parametrize("error", [BROKEN, ApiError(429, "TooManyRequests", "later")])
async def test_an_error_that_may_pass_is_tried_again_and_gives_the_run_back_after_a_minute(
    begin: Any, kind: type[Action], request_: str, reason: str, error: ApiError
) -> None:
    world = begin()
    edge = Edge(Server(request_, error))
    while edge.now < TRANSIENT_ERROR_SECONDS:
        with pytest.raises(ApiError):
            await edge.do(world, *actions_of(world, kind))
        edge.now += 20.0
    with pytest.raises(TryAgain):
        await edge.do(world, *actions_of(world, kind))
    world.settle()
    world.reap()
    world.settle()
    assert (last_run(world).outcome, world.reason("Running")) == ("Evicted", reason)
    assert f"{error.message}, for 60 s" in world.message("Running")


async def test_errors_far_apart_are_no_reason_to_give_a_run_back() -> None:
    world = granted()
    edge = Edge(Server("create pods", BROKEN))
    for _ in range(5):
        with pytest.raises(ApiError):
            await edge.do(world, *actions_of(world, CreatePod))
        edge.now += 120.0
    assert world.refusals.run == 0


async def test_a_pod_that_is_in_the_way_for_ever_gives_the_run_back() -> None:
    world = granted()
    (create,) = actions_of(world, CreatePod)
    assert isinstance(create, CreatePod)
    metadata = {
        "uid": "old",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [],
    }
    found = {**create.manifest, "metadata": {**create.manifest["metadata"], **metadata}}
    server = Server("create pods", Conflict(409, "AlreadyExists", "already exists"), found)
    edge = Edge(server)
    for _ in range(4):
        with pytest.raises(TryAgain, match="earlier job"):
            await edge.do(world, *actions_of(world, CreatePod))
        edge.now += 20.0
    world.settle()
    assert last_run(world).outcome == "Evicted"
    assert "of an earlier job is still there" in world.message("Running")


async def test_a_service_of_somebody_else_is_neither_taken_over_nor_waited_for() -> None:
    world = granted()
    server = Server(service=service(None))
    edge = Edge(server)
    with pytest.raises(TryAgain):
        await edge.do(world, *actions_of(world, EnsureService))
    assert (server.applied, server.created) == ([], [])
    world.settle()
    assert world.reason("Running") == "ServiceRefused"
    assert 'services "tj-job" already exists and is not of TrainingJob job' in world.message("Running")


async def test_a_service_of_a_deleted_job_of_the_name_is_waited_for() -> None:
    world = granted()
    server = Server(service=service("uid of an earlier one"))
    with pytest.raises(TryAgain, match="earlier job"):
        await Edge(server).do(world, *actions_of(world, EnsureService))
    assert server.applied == []


async def test_an_old_service_of_ours_is_brought_up_to_date_and_only_that_very_one() -> None:
    world = granted()
    server = Server(service=service(world.view.uid))
    (ensure,) = actions_of(world, EnsureService)
    await Edge(server).do(world, ensure)
    assert [body["metadata"]["uid"] for body in server.applied] == ["s"]


async def test_a_service_that_is_as_it_should_be_is_not_written() -> None:
    world = granted()
    (ensure,) = actions_of(world, EnsureService)
    assert isinstance(ensure, EnsureService)
    metadata = {**ensure.manifest["metadata"], "uid": "s"}
    server = Server(service={**ensure.manifest, "metadata": metadata})
    await Edge(server).do(world, ensure)
    assert (server.applied, server.created) == ([], [])


async def test_a_service_that_is_not_there_is_created_and_never_forced() -> None:
    world = granted()
    server = Server()
    await Edge(server).do(world, *actions_of(world, EnsureService))
    assert (server.applied, server.created) == ([], [SERVICES])


@pytest.mark.parametrize("begin", [granted, gated])
def test_a_run_that_the_extender_revoked_for_want_of_pods_ends_and_its_next_try_waits(begin: Any) -> None:
    world = begin()
    told = say(Reason.PODS_NOT_STARTED, run=1, seconds=300)
    world.allocate(state="Revoked", reason=f"{told.reason.value}: {told.message}")
    world.settle()
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert (service.ended_run, service.refusals, last_run(world).outcome) == (1, 1, "Evicted")
    assert world.reason("Running") == "PodsNotStarted"
    assert service.retry_at is not None


def test_a_run_that_was_displaced_before_it_started_does_not_wait() -> None:
    world = granted()
    world.revoke()
    world.settle()
    service = world.status.service
    assert service is not None
    assert (service.ended_run, service.refusals, service.retry_at) == (1, 0, None)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ApiError(500, "", "etcdserver: request is too large"), 1),
        (ApiError(422, "Invalid", "status.phase: Unsupported value"), 1),
        (ApiError(500, "", "etcdserver: leader changed"), 0),
        (ApiError(429, "TooManyRequests", "later"), 0),
    ],
)
async def test_a_status_that_is_refused_for_good_is_told_in_one_event(error: ApiError, told: int) -> None:
    server, world = Server("apply trainingjobs", error), World()
    queue = _Told()
    edge = Edge(server, queue)
    status = [action for action in world.step().todo if isinstance(action, ApplyStatus)]
    assert status
    for _ in range(3):
        with pytest.raises(ApiError):
            await edge.do(world, *status)
    assert queue.told == [world.view.uid] * told


class _Told(EventQueue):
    """Notes whom events are about."""

    def __init__(self) -> None:
        super().__init__(asyncio.Event())
        self.told: list[str] = []

    def add(self, subject: str, post: Post) -> None:
        self.told.append(subject)
