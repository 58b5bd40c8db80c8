"""Jobs that a deleted namespace has left behind: the API server has them, and answers each write of them with 404."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.operator.objects import START, job_manifest, workers_json
from support.operator.world import World
from synergy_api.timestamps import format_time
from synergy_kube import NotFound
from synergy_kube.reflector import Change
from synergy_kube.resources import PODS, Resource
from synergy_operator.edge.caches.refusals import TRANSIENT_ERROR_SECONDS
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.job.array import AT_ONCE, REFUSED_SECONDS

Object = dict[str, Any]
KEY = ("team", "job")


class Server:
    """Has one job, unless it is not `there`. It takes `most` more writes, then the namespace is gone. `writes` has what
    was tried."""

    def __init__(self, job: Object) -> None:
        self.job, self.there = job, True
        self.most = 0
        self.writes: list[str] = []
        self.on_error: Any = None

    async def apply(self, resource: Resource, name: str, body: Mapping[str, Any], *_: str, **__: str) -> Object:
        self._write(resource)
        version = str(int(self.job["metadata"]["resourceVersion"]) + 1)
        metadata = {**self.job["metadata"], "resourceVersion": version}
        others = {field: one for field, one in self.job.get("status", {}).items() if field == "allocation"}
        self.job = {**self.job, "metadata": metadata, "status": {**body["status"], **others}}
        return copy.deepcopy(self.job)

    async def create(self, resource: Resource, body: Mapping[str, Any], namespace: str) -> Object:
        self._write(resource)
        made = {"uid": "new", "resourceVersion": "1", "creationTimestamp": format_time(START)}
        return {**body, "metadata": {**body["metadata"], **made}}

    def _write(self, resource: Resource) -> None:
        self.writes.append(resource.plural)
        if not self.there:
            raise NotFound(404, "NotFound", 'trainingjobs.kube-synergy.dev "job" not found')
        if self.most == 0:
            raise NotFound(404, "NotFound", 'namespaces "team" not found')
        self.most -= 1


class Stage:
    """A controller that knows the server's job, with clocks that only the test moves."""

    def __init__(self, job: Object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        certificate = folder / "ca.crt"
        certificate.write_text("pem")
        self.server = Server(job)
        environment = Environment("image", "https://extender", certificate)
        self._controller = Controller(self.server, environment, lambda: START + self.now)  # type: ignore[arg-type]
        self._controller._cluster = World().cluster
        monkeypatch.setattr(self._controller._executor._refused, "_monotonic", lambda: self.now)
        self.watch()

    def watch(self) -> None:
        """The watch brings the job as it is."""
        self._controller._on_job(Change(KEY, None, self._controller._jobs.trim(copy.deepcopy(self.server.job))))

    async def look(self) -> list[str]:
        """One turn of the job; what it tried to write."""
        before = len(self.server.writes)
        await self._controller._reconcile(KEY)
        return self.server.writes[before:]

    async def fails(self) -> list[str]:
        """One turn that ends with a refusal, after each of which the next one is later, by up to 30 s."""
        before = len(self.server.writes)
        with pytest.raises((TryAgain, NotFound)):
            await self._controller._reconcile(KEY)
        return self.server.writes[before:]


async def test_an_orphan_costs_one_write_a_turn_and_goes_on_when_its_namespace_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(job_manifest(), tmp_path, monkeypatch)
    for _ in range(3):
        assert await stage.fails() == ["trainingjobs"]
    stage.server.most = 1
    assert await stage.look() == ["trainingjobs"]
    assert stage.server.job["status"]["phase"] == "Queued"


async def test_a_job_that_is_really_gone_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(job_manifest(), tmp_path, monkeypatch)
    stage.server.there = False
    await stage.fails()
    assert await stage.look() == []


async def test_an_orphan_with_a_place_ceases_to_make_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(job_manifest(), tmp_path, monkeypatch)
    stage.server.most = 1
    await stage.look()
    place = {
        "run": 1,
        "state": "Granted",
        "admitted": True,
        "gpuType": "V100",
        "workers": [workers_json("n1", 1, 1, 1)],
    }
    stage.server.job["status"]["allocation"] = {**place, "leaseUntil": format_time(START + 300)}
    stage.server.job["metadata"]["resourceVersion"] = "9"
    stage.watch()
    while stage.now < TRANSIENT_ERROR_SECONDS:
        assert await stage.fails() == [PODS.plural]
        stage.now += 20.0
    assert await stage.fails() == [PODS.plural], "the last of them: the run counts as refused"
    for _ in range(3):
        assert await stage.fails() == ["trainingjobs"]


async def test_an_array_without_a_namespace_makes_its_members_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(job_manifest(array={"count": 100}), tmp_path, monkeypatch)
    stage.server.most = 1
    assert await stage.look() == ["trainingjobs"] * (1 + AT_ONCE), "its status, and members"
    for _ in range(3):
        assert await stage.fails() == ["trainingjobs"]
        stage.now += REFUSED_SECONDS
