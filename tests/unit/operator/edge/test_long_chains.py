"""Of the jobs before a job, and of an array's members, a reconcile parses none: there may be thousands."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, connected
from support.operator.objects import job_manifest
from support.operator.world import World
from synergy_api.names import API_VERSION, LABEL_ARRAY_INDEX
from synergy_kube.reflector import Change
from synergy_operator.actions import Action, ApplyStatus
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.members import Members
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment
from synergy_operator.edge.executor import Executor
from synergy_operator.edge.trimming import VIEW
from synergy_operator.views.job import JobView
from synergy_operator.views.stored_job import StoredJob, store_job

Json = dict[str, Any]
COUNT = 600
"""More than the cache keeps parsed."""


class Watched:
    """What a controller does on one reconcile, and how many jobs it parses for that."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parsed = 0
        self.todo: list[Action] = []
        self._certificate = path / "ca.crt"
        self._certificate.write_text("pem")
        view = StoredJob.view

        def count(stored: StoredJob) -> JobView:
            self.parsed += 1
            return view(stored)

        async def carry_out(_: Executor, __: JobView, actions: Iterable[Action]) -> None:
            self.todo.extend(actions)

        monkeypatch.setattr(StoredJob, "view", count)
        monkeypatch.setattr(Executor, "carry_out", carry_out)

    async def reconcile(self, items: Iterable[Json], name: str) -> None:
        async with connected(WatchServer()) as client:
            controller = Controller(client, Environment("image", "https://extender", self._certificate), lambda: 0.0)
            controller._cluster = World().cluster
            for item in items:
                key = (item["metadata"]["namespace"], item["metadata"]["name"])
                controller._on_job(Change(key, None, {"metadata": item["metadata"], VIEW: store_job(item)}))
            self.parsed = 0
            await controller._reconcile(("team", name))

    @property
    def running(self) -> str:
        """The message of the condition that is written."""
        (status,) = [action.status for action in self.todo if isinstance(action, ApplyStatus)]
        return next(one.message for one in status.conditions or () if one.type == "Running")


def _in_chain(number: int, *, circle: bool) -> Json:
    before = f"j{(number - 1) % COUNT}"
    spec = {"after": [{"job": before}]} if number or circle else {}
    return {**job_manifest(f"j{number}", **spec), "status": {"phase": "Pending"}}


@pytest.mark.parametrize("circle", [False, True])
async def test_of_a_chain_of_jobs_a_reconcile_of_the_last_parses_only_that(
    circle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, monkeypatch)
    last = f"j{COUNT - 1}"
    items = [_in_chain(number, circle=circle) for number in range(COUNT)]
    await watched.reconcile(items, last)
    assert watched.parsed <= 1
    told = f"{last} waits for j{COUNT - 2} waits for" if circle else f"waits for j{COUNT - 2} to succeed"
    assert told in watched.running


def _member(number: int) -> Json:
    item = job_manifest(f"sweep-{number}")
    owner = {"apiVersion": API_VERSION, "kind": "TrainingJob", "name": "sweep", "uid": "u", "controller": True}
    item["metadata"] |= {"labels": {LABEL_ARRAY_INDEX: str(number)}, "ownerReferences": [owner]}
    return {**item, "status": {"phase": "Running"}}


def _array() -> Json:
    item = job_manifest("sweep", array={"count": COUNT})
    item["metadata"]["uid"] = "u"
    return item


async def test_of_the_members_of_an_array_its_reconcile_parses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, monkeypatch)
    await watched.reconcile([_array(), *map(_member, range(COUNT))], "sweep")
    assert watched.parsed <= 1
    assert f"{COUNT} run, 0 wait" in watched.running


def test_a_member_that_an_answer_has_brought_is_seen_before_its_news() -> None:
    jobs = JobCache()
    members = Members(jobs)
    array = store_job(_array()).view()
    jobs.take(_member(0))
    assert [one.phase for one in members.of(array)] == ["Running"]
    item = _member(0)
    item["metadata"]["resourceVersion"] = "2"
    jobs.take({**item, "status": {"phase": "Succeeded"}})
    assert [one.phase for one in members.of(array)] == ["Succeeded"]
    foreign = _array()
    foreign["metadata"]["uid"] = "another"
    assert members.of(store_job(foreign).view()) == ()
