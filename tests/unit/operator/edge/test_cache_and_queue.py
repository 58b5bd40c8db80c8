"""The caches know what was written a moment ago; the queue works by key."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.operator.objects import job_manifest
from support.waiting import eventually
from synergy_api.amounts import Amounts
from synergy_kube import ApiError
from synergy_operator.edge.caches.objects import ObjectCache, OwnedCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.work_queue import FairQueue, TryAgain, WorkQueue
from synergy_operator.views.job import JobView, read_job
from synergy_operator.views.refusals import RefusedResize


@dataclass(frozen=True)
class Thing:
    """A cached object."""

    name: str
    uid: str
    resource_version: str
    job: str = "job"
    namespace: str = "team"


def test_the_newer_copy_is_kept_whoever_brings_it() -> None:
    cache: ObjectCache[Thing] = ObjectCache()
    assert cache.keep(Thing("a", "1", "10"))
    assert not cache.keep(Thing("a", "1", "9"))
    assert not cache.keep(Thing("a", "1", "10"))
    assert cache.keep(Thing("a", "1", "100"))
    kept = cache.get(("team", "a"))
    assert kept is not None
    assert kept.resource_version == "100"
    assert len(cache) == 1


def test_a_late_answer_does_not_bring_back_what_is_gone() -> None:
    cache: ObjectCache[Thing] = ObjectCache()
    cache.keep(Thing("a", "1", "10"))
    cache.drop(("team", "a"))
    assert not cache.keep(Thing("a", "1", "11"))
    assert cache.keep(Thing("a", "2", "12")), "another object may take the name"


def test_only_the_object_that_is_meant_is_dropped() -> None:
    cache: ObjectCache[Thing] = ObjectCache()
    cache.keep(Thing("a", "2", "10"))
    assert cache.drop(("team", "a"), "1") is None
    assert cache.get(("team", "a")) is not None
    assert cache.drop(("team", "b")) is None


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    cache: ObjectCache[Thing] = ObjectCache()
    assert cache.keep(Thing("a", "1", "x"))
    assert cache.keep(Thing("a", "1", "w"))
    assert not cache.keep(Thing("a", "1", "w"))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["j", "k"]), st.booleans()), max_size=40))
def test_objects_are_found_by_their_job(steps: list[tuple[str, str, bool]]) -> None:
    cache: OwnedCache[Thing] = OwnedCache()
    there: dict[str, str] = {}
    for version, (name, job, keep) in enumerate(steps):
        if keep:
            cache.keep(Thing(name, str(version), str(version), job))
            there[name] = job
        else:
            cache.drop(("team", name))
            there.pop(name, None)
    for job in ("j", "k"):
        found = [thing.name for thing in cache.of_job(("team", job))]
        assert found == sorted(name for name, owner in there.items() if owner == job)


def test_refusals_are_kept_by_job_until_pod_or_job_is_gone() -> None:
    log = RefusalLog()
    key = ("team", "job")
    log.refuse_run(key, 3, "quota", invalid=False)
    size = RefusedResize(Amounts(0, 1, 2), "no room", at=3.0)
    log.refuse_resize(key, "uid", size)
    assert (log.of(key).run, log.of(key).message, dict(log.of(key).resizes)) == (3, "quota", {"uid": size})
    log.forget_pod(key, "uid")
    assert not log.of(key).resizes
    log.forget(key)
    assert log.of(key).run == 0


async def test_each_key_is_worked_on_by_one_worker_at_a_time_and_again_if_it_came_meanwhile() -> None:
    running: Counter[str] = Counter()
    worked: Counter[str] = Counter()
    release = asyncio.Event()

    async def work(key: str) -> float | None:
        running[key] += 1
        assert running[key] == 1
        await release.wait()
        running[key] -= 1
        worked[key] += 1
        return None

    queue = WorkQueue(work, workers=4)
    task = asyncio.create_task(queue.run())
    for _ in range(5):
        queue.add("a")
        queue.add("b")
    await _until(lambda: running["a"] == running["b"] == 1)
    queue.add("a")
    queue.add("a")
    release.set()
    await _until(lambda: worked["a"] == 2)
    assert worked == {"a": 2, "b": 1}
    await _stop(task)


async def test_a_key_is_looked_at_again_when_its_work_says_so() -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()

    async def work(_: str) -> float | None:
        times.append(loop.time())
        return 0.05 if len(times) == 1 else None

    queue = WorkQueue(work)
    task = asyncio.create_task(queue.run())
    queue.add("a")
    await _until(lambda: len(times) == 2)
    assert times[1] - times[0] >= 0.05
    await _stop(task)


async def test_the_earliest_of_several_moments_counts() -> None:
    worked: list[str] = []

    async def work(key: str) -> float | None:
        worked.append(key)
        return None

    queue = WorkQueue(work)
    task = asyncio.create_task(queue.run())
    queue.add_after("a", 0.02)
    queue.add_after("a", 60)
    queue.add_after("b", 60)
    queue.add_after("b", 0.02)
    await _until(lambda: sorted(worked) == ["a", "b"])
    await _stop(task)


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (TryAgain("old"), "DEBUG"),
        (ApiError(500, "Internal", "no"), "WARNING"),
        (TimeoutError("slow"), "WARNING"),
        (ValueError("a mistake"), "ERROR"),
    ],
)
async def test_a_failure_is_tried_again_and_stops_no_other_key(
    error: Exception, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    worked: Counter[str] = Counter()

    async def work(key: str) -> float | None:
        worked[key] += 1
        if key == "bad" and worked[key] < 3:
            raise error
        return None

    queue = WorkQueue(work, workers=1)
    task = asyncio.create_task(queue.run())
    queue.add("bad")
    queue.add("good")
    await _until(lambda: worked["good"] == 1 and worked["bad"] == 3)
    assert {record.levelname for record in caplog.records if "again in" in record.message} == {level}
    assert not queue.stuck
    await _stop(task)


async def _until(holds: Callable[[], bool]) -> None:
    async def probe() -> bool:
        return holds()

    await eventually(probe, seconds=5, what="the queue to do its work", every=0.005)


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def _job(**changes: Any) -> JobView:
    manifest = job_manifest()
    manifest["status"] = {"phase": "Running", "progress": {"run": 1, "steps": 5}, **changes.pop("status", {})}
    manifest["metadata"] = {**manifest["metadata"], "resourceVersion": "7", **changes}
    return read_job(manifest)


def test_namespaces_take_turns_and_each_ones_jobs_come_in_their_order() -> None:
    turns = FairQueue[tuple[str, str]](lambda key: key[0])
    for index in range(100):
        turns.append(("flood", f"j{index}"))
    turns.append(("team", "a"))
    turns.append(("team", "b"))
    turns.append(("other", "c"))
    taken = [turns.popleft() for _ in range(6)]
    assert taken == [("flood", "j0"), ("team", "a"), ("other", "c"), ("flood", "j1"), ("team", "b"), ("flood", "j2")]
    assert len(turns) == 97
    assert [turns.popleft()[1] for _ in range(97)] == [f"j{index}" for index in range(3, 100)]
    with pytest.raises(KeyError):
        turns.popleft()


@given(st.lists(st.tuples(st.sampled_from("ARPG"), st.integers(0, 5), st.integers(0, 2)), max_size=60))
def test_a_fair_queue_has_each_key_once_and_no_group_waits_for_another_s_second(
    steps: list[tuple[str, int, int]],
) -> None:
    """Append, remove, pop, or change of Group, of one of six keys."""
    groups = dict.fromkeys(range(6), 0)
    line = FairQueue[int](groups.__getitem__)
    waiting: dict[int, list[int]] = {}  # by group as it was when the key was appended, in order
    for step, key, group in steps:
        there = [other for other, keys in waiting.items() if key in keys]
        if step == "G":
            groups[key] = group
        elif step == "A":
            line.append(key)
            if there != [groups[key]]:
                for other in there:
                    waiting[other].remove(key)
                waiting.setdefault(groups[key], []).append(key)
        elif step == "R" and there:
            line.remove(key)
            waiting[there[0]].remove(key)
        elif step == "P" and any(waiting.values()):
            taken = line.popleft()
            (of,) = (other for other, keys in waiting.items() if taken in keys)
            assert waiting[of].pop(0) == taken
        assert len(line) == sum(map(len, waiting.values()))
    left = {group: len(keys) for group, keys in waiting.items() if keys}
    first = [line.popleft() for _ in range(len(left))]
    assert {group for group, keys in waiting.items() for key in keys if key in first} == set(left)


def test_fields_that_a_newer_version_has_written_are_left_unread() -> None:
    read = _job(status={"mood": "good", "progress": {"run": 1, "steps": 5, "epochsLeft": 3}})
    assert read.status.progress is not None
    assert read.status.progress.steps == 5
