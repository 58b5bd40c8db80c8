"""The operator deletes published ThroughputProfiles if there are too many, and keeps of each what it needs."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from support.operator.objects import START, job_manifest
from support.operator.owners import no_owners, no_warnings
from support.operator.world import World
from support.waiting import eventually
from synergy_api.timestamps import format_time
from synergy_kube import ApiError, Change, Conflict, NotFound
from synergy_kube.resources import THROUGHPUT_PROFILES, Resource
from synergy_operator.actions import PublishProfile
from synergy_operator.edge.caches import profile_retention
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.profiles import ProfileCache, trim_profile
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.executor import Executor
from synergy_operator.profile.known_profiles import MOST_PUBLISHED
from synergy_operator.views.stored_job import store_job

Json = dict[str, Any]
MATRIX = {"gpuType": "V100", "cpuMillis": [1000], "memoryBytes": [1], "stepsPerSecond": [[1.0]]}
OURS = {"kube-synergy.dev/published": "true"}


def name_of(number: int) -> str:
    return f"measured{number:04}"


def spec_of(name: str, measured_at: float = 0.0) -> Json:
    about = {"fingerprint": name, "image": "i", "gpus": 1, "matrices": [MATRIX]}
    return {**about, "measuredAt": format_time(measured_at)}


class Server:
    """An API server with ThroughputProfiles, whose watch `cache` follows at once. It refuses to delete some names."""

    def __init__(self, jobs: JobCache) -> None:
        self.items: dict[str, Json] = {}
        self.refused: set[str] = set()
        self.statuses: list[tuple[str, Json]] = []
        self.cache = ProfileCache(self, lambda: START, lambda _: None, jobs.unfinished)

    async def create(self, resource: Resource, body: Mapping[str, Any]) -> Json:
        assert resource is THROUGHPUT_PROFILES
        name = body["metadata"]["name"]
        made = {"uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": format_time(START)}
        self.show({**body, "metadata": {**body["metadata"], **made}})
        return self.items[name]

    async def apply(
        self, resource: Resource, name: str, body: Mapping[str, Any], *, manager: str, subresource: str | None = None
    ) -> Json:
        assert (resource, manager) == (THROUGHPUT_PROFILES, "kube-synergy-operator")
        if subresource is not None:
            self.statuses.append((name, dict(body["status"])))
        old = self.items[name]
        self.show({**old, **body, "metadata": {**old["metadata"], **body.get("metadata", {}), "resourceVersion": "2"}})
        return self.items[name]

    async def delete(self, resource: Resource, name: str, *, uid: str) -> None:
        assert resource is THROUGHPUT_PROFILES
        if name in self.refused:
            raise ApiError(500, "InternalError", "not now")
        if name not in self.items:
            raise NotFound(404, "NotFound", name)
        if self.items[name]["metadata"]["uid"] != uid:
            raise Conflict(409, "Conflict", "another uid")
        del self.items[name]
        self.cache.update(Change(("", name), {}, None))

    def show(self, item: Json) -> None:
        """The profile as it is now."""
        name = item["metadata"]["name"]
        self.items[name] = item
        self.cache.update(Change(("", name), None, trim_profile(item)))

    def fill(self, numbers: Iterable[int], labels: Json) -> None:
        """Profiles that were measured in the order of their numbers."""
        for number in numbers:
            metadata = {"name": name_of(number), "uid": "u", "resourceVersion": "1", "labels": labels}
            self.show({"metadata": metadata, "spec": spec_of(name_of(number), number)})

    async def pass_by(self) -> set[str]:
        """The profiles that a pass deletes."""
        before = set(self.items)
        await self.cache._retention._pass("")
        return before - set(self.items)


def names(numbers: Iterable[int]) -> set[str]:
    return {name_of(number) for number in numbers}


async def test_the_oldest_go_some_at_a_time_until_as_many_are_left_as_are_kept() -> None:
    server = Server(JobCache())
    server.fill(range(10), {})
    server.fill(range(10, 10 + MOST_PUBLISHED + 30), OURS)
    assert await server.pass_by() == names(range(10, 30))
    assert await server.pass_by() == names(range(30, 40))
    assert await server.pass_by() == set()
    assert names(range(10)) < set(server.items), "those that somebody wrote by hand are older, and stay"
    assert len(server.items) == 10 + MOST_PUBLISHED


async def test_the_profile_of_a_job_stays_until_the_job_has_ended() -> None:
    jobs = JobCache()

    def job(phase: str, version: str) -> None:
        item = job_manifest()
        item["metadata"]["resourceVersion"] = version
        item["status"] = {"phase": phase, "profile": {"state": "Complete", "fingerprint": name_of(0)}}
        jobs.keep(store_job(item))

    server = Server(jobs)
    job("Running", "1")
    server.fill(range(MOST_PUBLISHED + 1), OURS)
    assert await server.pass_by() == names([1])
    server.fill([MOST_PUBLISHED + 1], OURS)
    job("Succeeded", "2")
    assert await server.pass_by() == names([0])


async def test_what_is_gone_or_replaced_is_left_alone() -> None:
    server = Server(JobCache())
    server.fill(range(MOST_PUBLISHED + 2), OURS)
    gone = server.items.pop(name_of(0))
    replaced = server.items[name_of(1)]
    server.items[name_of(1)] = {**replaced, "metadata": {**replaced["metadata"], "uid": "another"}}
    assert await server.pass_by() == set(), "the watch is late"
    server.cache.update(Change(("", name_of(0)), gone, None))
    server.show(server.items[name_of(1)])
    assert await server.pass_by() == names([1]), "by now it is known"


async def test_one_that_cannot_be_deleted_keeps_no_other_and_is_tried_again() -> None:
    server = Server(JobCache())
    server.fill(range(MOST_PUBLISHED + 3), OURS)
    server.refused = names([1])
    with pytest.raises(ApiError, match="not now"):
        await server.pass_by()
    assert names(range(3)) & set(server.items) == names([1])
    server.refused = set()
    assert await server.pass_by() == names([1])


async def test_passes_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_retention, "_PAUSE_SECONDS", 0.0)
    server = Server(JobCache())
    server.fill(range(MOST_PUBLISHED + 25), OURS)
    running = asyncio.create_task(server.cache._retention.run())

    async def done() -> bool:
        return len(server.items) == MOST_PUBLISHED

    await eventually(done, seconds=20, what="two passes", every=0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_the_operator_labels_what_it_publishes_and_not_what_somebody_wrote() -> None:
    jobs = JobCache()
    server = Server(jobs)
    executor = Executor(
        server,
        jobs=jobs,
        pods=OwnedCache(),
        batch_jobs=OwnedCache(),
        refusals=RefusalLog(),
        warnings=no_warnings(server),
        events=EventQueue(asyncio.Event()),
        owners=no_owners(server),
        clock=lambda: START,
        wake=lambda _: None,
    )
    server.fill([0], {})
    by_hand, measured = name_of(0), name_of(1)
    publications = [PublishProfile(by_hand, spec_of(by_hand), "1"), PublishProfile(measured, spec_of(measured))]
    await executor.carry_out(World().view, publications)
    of_its_namespace = {**OURS, "kube-synergy.dev/measured-for": World().view.namespace}
    assert server.items[measured]["metadata"]["labels"] == of_its_namespace
    server.fill(range(2, MOST_PUBLISHED + 2), of_its_namespace)
    assert await server.pass_by() == names([1])


async def test_nothing_of_a_spec_is_kept_twice_and_conditions_are_written_once() -> None:
    server = Server(JobCache())
    server.fill([0], {})
    kept = trim_profile(server.items[name_of(0)])
    assert kept.keys() == {"metadata", "status", "view"}
    (known,) = server.cache.known[name_of(0)]
    assert known.spec is not None
    assert known.spec.matrices[0].steps_per_second == [[1.0]]
    for _ in range(2):
        await server.cache._write_status(name_of(0))
    ((name, status),) = server.statuses
    assert name == name_of(0)
    assert [(one["type"], one["reason"]) for one in status["conditions"]] == [("Valid", "Used")]
