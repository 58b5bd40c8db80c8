"""Somebody with the right to edit Jobs changes annotations of a profile Job: the operator goes on, and counts no wrong
point."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.operator.objects import GIB, Json
from support.operator.profile_world import SIDE, TRAIN, failed, give_place, granted, knee, measured, run_point
from support.operator.world import World
from synergy_api.parts.profile import ProfilePoint
from synergy_api.resources.scheduling_policy import Profiling
from synergy_operator.profile.deduplication import candidate_of

DATA: Json = {"dataset": {"bytes": 8 * GIB, "samples": 8192}, "batchSize": 64}
FEW = Profiling(max_sweep_points=8)
"""Two CPU points, and three runs with less memory at each of them."""
FIRST = "job-1-12000"
BEYOND = str(10**25)
LONG = "9" * 5000
ANNOTATIONS = ("cpu-millis", "hit-rate", "storage-bytes-per-s", "repeat", "reference", "reference-model")

texts = (
    st.text(max_size=20)
    | st.integers(-(10**40), 10**40).map(str)
    | st.floats().map(str)
    | st.sampled_from((LONG, "12000", "0.5", "job-1", "x" * 254))
)


def change(job: Json, name: str, text: str | None) -> None:
    """Somebody writes an annotation, or removes it."""
    annotations, key = job["metadata"]["annotations"], f"kube-synergy.dev/{name}"
    annotations.pop(key, None)
    if text is not None:
        annotations[key] = text


def under_way(world: World) -> str:
    return next(name for name in sorted(world.jobs) if not world.jobs[name]["status"])


def end(world: World, name: str, speed: float = 9.0, **more: Any) -> None:
    world.bind(f"{name}-x")
    world.start(f"{name}-x")
    world.exit(f"{name}-x", 0, measured(speed, **more))
    world.finish_job(name)
    world.settle()


def points_of(world: World) -> list[ProfilePoint]:
    assert world.status.profile is not None
    return world.status.profile.points


def again(world: World) -> None:
    """The next run gets its place."""
    world.wait(10)
    world.settle()
    give_place(world)
    world.settle()


def with_checks() -> World:
    """A sweep that has measured its CPU points, with its first run with less memory under way."""
    world = World(profile={"mode": "Sweep"}, **DATA)
    world.profiling = FEW
    world.pools = [
        {
            "metadata": {"name": "pool", "resourceVersion": "1"},
            "spec": {
                "nodeSelector": {"nvidia.com/gpu.product": "V100"},
                "gpuType": "V100",
                "storageBandwidth": 8 * (200 << 20),
            },
        }
    ]
    world.settle()
    give_place(world)
    world.settle()
    while "h" not in under_way(world)[4:]:
        end(world, under_way(world), cached=True)
    return world


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cpu-millis", BEYOND),
        ("cpu-millis", LONG),
        ("cpu-millis", "6000"),
        ("cpu-millis", "-1"),
        ("cpu-millis", None),
        ("hit-rate", "0.5"),
        ("repeat", "1"),
    ],
)
def test_a_run_whose_job_was_changed_has_failed_and_the_next_measures_the_point(name: str, text: str | None) -> None:
    world = granted()
    change(world.jobs[FIRST], name, text)
    end(world, FIRST)
    assert world.reason("Running") == "ProfileJobChanged"
    assert f"Job {FIRST} " in world.message("Running")
    assert points_of(world) == []
    assert candidate_of(world.view) is None, "no identical job waits for it"
    service = world.status.service
    assert service is not None
    assert (service.ended_run, service.failures) == (1, 1)
    again(world)
    while world.status.phase == "Profiling":
        run_point(world, knee)
    assert world.status.phase == "Queued"
    assert {point.cpu_millis: point.steps_per_second for point in points_of(world)}[12000] == knee(12000)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hit-rate", "nan"),
        ("hit-rate", "2.0"),
        ("hit-rate", "-inf"),
        ("hit-rate", "x"),
        ("hit-rate", "0.5"),
        ("hit-rate", None),
        ("storage-bytes-per-s", BEYOND),
        ("storage-bytes-per-s", str(2**63)),
        ("storage-bytes-per-s", "0"),
        ("storage-bytes-per-s", "7"),
        ("storage-bytes-per-s", None),
    ],
)
def test_so_has_one_whose_run_with_less_memory_was_changed(name: str, text: str | None) -> None:
    world = with_checks()
    before = points_of(world)
    job = under_way(world)
    change(world.jobs[job], name, text)
    end(world, job)
    assert world.reason("Running") == "ProfileJobChanged"
    assert points_of(world) == before
    again(world)
    assert under_way(world) == job.replace("job-1-", "job-2-"), "the series goes on where it was"
    while world.status.phase == "Profiling":
        end(world, under_way(world), cached=True)
    assert len(points_of(world)) == 8


@pytest.mark.parametrize("run", ["7", "x"])
def test_so_has_one_whose_job_names_another_run(run: str) -> None:
    world = granted()
    world.jobs[FIRST]["metadata"]["labels"]["kube-synergy.dev/run"] = run
    end(world, FIRST)
    assert world.reason("Running") == "ProfileJobChanged"
    assert points_of(world) == []
    assert world.status.service is not None
    assert world.status.service.failures == 1


def test_a_job_that_is_under_way_is_ended_once_it_was_changed() -> None:
    world = granted()
    world.bind()
    world.start()
    change(world.jobs[FIRST], "cpu-millis", "500")
    world.settle()
    assert world.jobs == {}
    world.reap()
    world.settle()
    assert world.status.service is not None
    assert world.status.service.ended_run == 1


def test_the_failure_of_a_changed_job_is_not_that_of_another_point() -> None:
    """Its sidecar keeps the pod, so one failure of a point would be enough."""
    world = granted(template={"spec": {"containers": [TRAIN, SIDE]}})
    world.bind()
    world.start()
    change(world.jobs[FIRST], "cpu-millis", "6000")
    world.exit(f"{FIRST}-x", 1, failed("Crashed", "exit code 1"))
    world.settle()
    assert world.status.phase == "Profiling"
    assert "ProfileJobChanged" in world.message("Running") + world.reason("Running")


@pytest.mark.parametrize(
    ("name", "text"),
    [("hit-rate", "nan"), ("storage-bytes-per-s", BEYOND), ("storage-bytes-per-s", "7"), ("repeat", LONG)],
)
def test_what_says_nothing_else_than_the_name_changes_nothing(name: str, text: str) -> None:
    world = granted()
    change(world.jobs[FIRST], name, text)
    end(world, FIRST)
    (point,) = points_of(world)
    assert (point.job, point.hit_rate, point.storage_bytes_per_second) == (FIRST, None, None)
    assert world.status.phase == "Profiling"


def test_of_one_job_there_is_one_run_however_often_its_annotations_change() -> None:
    world = with_checks()
    job = under_way(world)
    change(world.jobs[job], "hit-rate", f"{points_rate(world, job)}00001")
    end(world, job, cached=True)
    before = points_of(world)
    assert (before[-1].job, before[-1].hit_rate) == (job, points_rate(world, job))
    change(world.jobs[job], "storage-bytes-per-s", "7")
    world.settle()
    assert points_of(world) == before
    assert world.reason("Running") == "ProfileJobChanged"
    again(world)
    assert under_way(world) != job.replace("job-1-", "job-2-"), "the point is not measured again"


def points_rate(world: World, job: str) -> float:
    """The hit rate in the name of the Job."""
    return int(job.rpartition("h")[2]) / 10_000


@given(st.dictionaries(st.sampled_from(ANNOTATIONS), st.none() | texts), st.booleans())
def test_whatever_the_annotations_say_reconcile_goes_on(changes: dict[str, str | None], before: bool) -> None:
    world = granted()
    for name, text in changes.items() if before else ():
        change(world.jobs[FIRST], name, text)
    world.settle()
    if FIRST in world.jobs:
        end(world, FIRST)
    for name, text in changes.items():
        if FIRST in world.jobs:
            change(world.jobs[FIRST], name, text)
    world.settle()
    assert len(points_of(world)) <= 1
    assert {(point.cpu_millis, point.hit_rate) for point in points_of(world)} <= {(12000, None)}


def test_a_container_that_a_webhook_puts_first_is_no_change() -> None:
    world = with_checks()
    job = under_way(world)
    world.jobs[job]["spec"]["template"]["spec"]["containers"].insert(0, {"name": "mesh", "env": [{"name": "X"}]})
    end(world, job, cached=True)
    assert points_of(world)[-1].job == job


def test_another_bandwidth_of_the_pool_holds_for_the_next_run() -> None:
    world = with_checks()
    (pool,) = world.pools
    pool["metadata"]["resourceVersion"] = "2"
    pool["spec"]["storageBandwidth"] //= 2
    first = under_way(world)
    end(world, first, cached=True)
    limits = [
        world.jobs[job]["metadata"]["annotations"]["kube-synergy.dev/storage-bytes-per-s"]
        for job in (first, under_way(world))
    ]
    assert int(limits[0]) == 2 * int(limits[1]) > 0
