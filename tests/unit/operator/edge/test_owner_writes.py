"""What the operator writes on managed objects, and what it makes of refusals."""

import asyncio
from typing import Any

import pytest

from support.operator.managed_world import JOB, managed_job
from support.operator.objects import Json
from synergy_api.names import ANNOTATION_STATUS
from synergy_api.reasons import Reason
from synergy_kube import ApiError, Conflict, NotFound
from synergy_operator.actions import AdoptOwner, MarkOwner, SetSuspended, ShowOnOwner
from synergy_operator.edge.caches.objects import ObjectCache
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.managed.writer import OwnerWriter
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.views.owners.view import OwnerView, read_owner

SUSPEND = SetSuspended("Job", "j", "uid-j", True)
MARK = MarkOwner("Job", "j", "uid-j", "1", {"template": {}})
ADOPT = AdoptOwner("Job", "j", "uid-j", {})
SHOW = ShowOnOwner("Job", "j", "uid-j", "Queued", "Normal", Reason.MANAGED_STATE, "words")


class Server:
    """Answers patches with the Job, `refusal` first where there is one."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        self.refusal = refusal
        self.bodies: list[Json] = []
        self.keeps_marks = True
        self.created: list[str] = []
        self.has_created = asyncio.Event()

    async def merge_patch(self, _: Any, name: str, body: Json, namespace: str) -> Json:
        assert (name, namespace) == ("j", "team")
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal
        self.bodies.append(body)
        item = managed_job(marked=self.keeps_marks)
        item["metadata"] |= {"resourceVersion": str(len(self.bodies) + 1)}
        item["metadata"]["annotations"] = (body["metadata"].get("annotations")) or {}
        item["spec"]["suspend"] = (body.get("spec") or {}).get("suspend", True)
        return item

    async def create(self, resource: Any, body: Json, _: str) -> Json:
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal
        self.created.append(resource.kind)
        self.has_created.set()
        return body


class Desk:
    """A writer with a cache that has the Job."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        self.server = Server(refusal)
        self.cache: ObjectCache[OwnerView] = ObjectCache()
        self.cache.keep(read_owner(JOB, managed_job()))
        self.idle = asyncio.Event()
        self.idle.set()
        self.events = EventQueue(self.idle)
        self.writer = OwnerWriter(self.server, {"Job": self.cache}, self.events, lambda: 5.0)  # type: ignore[arg-type]

    @property
    def cached(self) -> OwnerView | None:
        return self.cache.get(("team", "j"))


async def test_a_write_is_of_that_very_object_and_its_answer_is_known_at_once() -> None:
    desk = Desk()
    await desk.writer.set_suspended("team", SetSuspended("Job", "j", "uid-j", False))
    assert desk.server.bodies == [{"metadata": {"uid": "uid-j"}, "spec": {"suspend": False}}]
    assert desk.cached is not None
    assert not desk.cached.suspended


async def test_one_that_is_gone_is_forgotten() -> None:
    desk = Desk(NotFound(404, "NotFound", 'jobs "j" not found'))
    await desk.writer.set_suspended("team", SUSPEND)
    assert desk.cached is None


async def test_one_that_has_changed_is_looked_at_again() -> None:
    desk = Desk(Conflict(409, "Conflict", "changed"))
    with pytest.raises(TryAgain, match="Job j has changed"):
        await desk.writer.mark("team", MARK)


async def test_a_template_that_may_not_change_is_told_on_the_object() -> None:
    desk = Desk(ApiError(422, "Invalid", "spec.template: field is immutable"))
    with pytest.raises(TryAgain, match="field is immutable"):
        await desk.writer.mark("team", MARK)
    assert desk.server.bodies[0]["metadata"]["annotations"] == {ANNOTATION_STATUS: "NotManaged"}


async def test_marks_that_the_definition_drops_are_told_on_the_object() -> None:
    desk = Desk()
    desk.server.keeps_marks = False
    with pytest.raises(TryAgain, match="keeps no marks in its pod templates"):
        await desk.writer.mark("team", MARK)
    assert desk.server.bodies[1]["metadata"]["annotations"] == {ANNOTATION_STATUS: "NotManaged"}


async def test_an_error_that_may_pass_is_passed_on() -> None:
    desk = Desk(ApiError(500, "InternalError", "later"))
    with pytest.raises(ApiError, match="later"):
        await desk.writer.mark("team", MARK)


async def test_a_state_is_shown_once_with_an_event() -> None:
    desk = Desk()
    await desk.writer.show("team", SHOW)
    await desk.writer.show("team", SHOW)
    assert len(desk.server.bodies) == 1
    running = asyncio.create_task(desk.events.run())
    await asyncio.wait_for(desk.server.has_created.wait(), 10)
    running.cancel()
    assert desk.server.created == ["Event"]


async def test_a_training_job_that_is_there_is_looked_at_again() -> None:
    await Desk().writer.adopt("team", ADOPT)
    with pytest.raises(TryAgain, match="exists"):
        await Desk(Conflict(409, "AlreadyExists", "exists")).writer.adopt("team", ADOPT)


async def test_a_training_job_that_is_refused_is_told_on_the_object() -> None:
    desk = Desk(ApiError(403, "Forbidden", "exceeded quota: jobs"))
    with pytest.raises(TryAgain, match="exceeded quota"):
        await desk.writer.adopt("team", ADOPT)
    assert desk.server.bodies[0]["metadata"]["annotations"] == {ANNOTATION_STATUS: "NotManaged"}
    with pytest.raises(ApiError, match="later"):
        await Desk(ApiError(500, "InternalError", "later")).writer.adopt("team", ADOPT)
