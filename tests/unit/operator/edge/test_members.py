"""Members of an array that the API server makes, refuses, or has already."""

import asyncio
import copy
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from support.operator.objects import job_manifest
from support.operator.owners import no_owners, no_warnings
from synergy_kube import ApiError, Conflict, NotFound
from synergy_kube.resources import Resource
from synergy_operator.actions import ChangeMember, CreateMember
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.executor import Executor
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.pods.members import member_manifest
from synergy_operator.views.job import read_job
from synergy_operator.views.metadata import Key

ARRAY = read_job(job_manifest("sweep", array={"count": 2}))


class Server:
    """Answers each write with the object, or with `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.patched: list[tuple[str, Mapping[str, Any]]] = []

    async def create(self, resource: Resource, body: Mapping[str, Any], _: str) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        item = copy.deepcopy(dict(body))
        item["metadata"] |= {"uid": "u", "resourceVersion": "2", "creationTimestamp": "2026-01-01T00:00:00Z"}
        return item

    async def merge_patch(self, resource: Resource, name: str, body: Mapping[str, Any], _: str) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        self.patched.append((name, body))
        return job_manifest(name)


class Desk:
    """An executor and what it remembers."""

    def __init__(self, server: Server) -> None:
        self.refusals, self.jobs = RefusalLog(), JobCache()
        self.woken: list[Key] = []
        parts = SimpleNamespace(
            refusals=self.refusals, warnings=no_warnings(server), events=EventQueue(asyncio.Event())
        )
        kept = SimpleNamespace(jobs=self.jobs, pods=OwnedCache[Any](), batch_jobs=OwnedCache[Any]())
        self.executor = Executor(
            server, clock=lambda: 7.0, owners=no_owners(server), wake=self.woken.append, **vars(kept), **vars(parts)
        )  # type: ignore[arg-type]

    @property
    def refused(self) -> str:
        member = self.refusals.of(ARRAY.key).member
        return "" if member is None else f"{member.message} at {member.at:g}"


def new(index: int = 0) -> CreateMember:
    assert ARRAY.spec is not None
    return CreateMember(member_manifest(ARRAY, ARRAY.spec, index))


async def test_a_member_that_is_made_is_known_at_once_and_clears_a_refusal() -> None:
    desk = Desk(Server(ApiError(403, "Forbidden", "exceeded quota: jobs")))
    await desk.executor.carry_out(ARRAY, [new(0), new(1)])
    assert desk.refused == "TrainingJob sweep-1: exceeded quota: jobs at 7"
    desk = Desk(Server())
    await desk.executor.carry_out(ARRAY, [new(1)])
    assert desk.refused == ""
    member = desk.jobs.get((ARRAY.namespace, "sweep-1"))
    assert member is not None
    assert (member.index, member.array_uid) == (1, ARRAY.uid)
    assert desk.woken == [(ARRAY.namespace, "sweep-1")], "the watch brings nothing newer of it"


async def test_a_name_that_somebody_has_is_told() -> None:
    desk = Desk(Server(Conflict(409, "AlreadyExists", "it exists")))
    await desk.executor.carry_out(ARRAY, [new()])
    assert desk.refused == "TrainingJob sweep-0 exists already, and is none of this array at 7"


async def test_errors_that_may_pass_are_raised() -> None:
    desk = Desk(Server(ApiError(500, "InternalError", "etcd")))
    with pytest.raises(ApiError):
        await desk.executor.carry_out(ARRAY, [new()])
    with pytest.raises(ApiError):
        await desk.executor.carry_out(ARRAY, [ChangeMember("sweep-0", "u", {"suspend": True})])


@pytest.mark.parametrize("error", [NotFound(404, "NotFound", "gone"), Conflict(409, "Conflict", "another uid")])
async def test_a_member_that_is_another_object_now_is_looked_at_again(error: ApiError) -> None:
    with pytest.raises(TryAgain, match="TrainingJob sweep-0 has changed"):
        await Desk(Server(error)).executor.carry_out(ARRAY, [ChangeMember("sweep-0", "u", {"suspend": True})])


async def test_a_change_names_the_object_and_a_refused_one_is_told() -> None:
    server = Server()
    desk = Desk(server)
    await desk.executor.carry_out(ARRAY, [ChangeMember("sweep-0", "u", {"suspend": True})])
    assert desk.woken == [(ARRAY.namespace, "sweep-0")]
    assert server.patched == [("sweep-0", {"metadata": {"uid": "u"}, "spec": {"suspend": True}})]
    server = Server(ApiError(422, "Invalid", "weight: too high"))
    desk = Desk(server)
    await desk.executor.carry_out(ARRAY, [ChangeMember("sweep-0", "u", {"weight": 99.0})])
    assert desk.refused == "TrainingJob sweep-0: weight: too high at 7"
    server.error = None
    await desk.executor.carry_out(ARRAY, [ChangeMember("sweep-1", "u", {"weight": 1.0})])
    assert desk.refused, "another member says nothing of this one"
    await desk.executor.carry_out(ARRAY, [ChangeMember("sweep-0", "u", {"weight": 1.0})])
    assert desk.refused == ""
