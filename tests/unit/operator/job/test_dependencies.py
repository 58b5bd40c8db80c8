"""Jobs that wait for other jobs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.operator.objects import job_manifest
from support.operator.world import World
from synergy_operator.edge.caches.dependents import Dependents
from synergy_operator.job.dependencies import reachable
from synergy_operator.views.job import JobView, read_job

PREPARE = [{"job": "prepare"}]


def other(name: str, phase: str | None = None, after: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """Another job of the namespace, as far as it is."""
    made = job_manifest(name, **({"after": after} if after else {}))
    made["status"] = {} if phase is None else {"phase": phase}
    return made


def waiting(after: list[dict[str, str]], *others: dict[str, Any]) -> World:
    world = World(after=after)
    world.others = {one["metadata"]["name"]: one for one in others}
    world.settle()
    return world


@pytest.mark.parametrize("phase", ["Running", "Pending", "Suspended", None])
def test_a_job_waits_until_the_one_before_has_succeeded(phase: str | None) -> None:
    world = waiting(PREPARE, other("prepare", phase))
    assert (world.status.phase, world.reason("Running")) == ("Pending", "WaitsForJobs")
    assert "waits for prepare to succeed" in world.message("Running")
    assert world.status.problem is None, "waiting is no problem"
    assert (world.pods, world.jobs) == ({}, {}), "it is not profiled either"
    world.others["prepare"]["status"]["phase"] = "Succeeded"
    world.settle()
    assert world.status.phase in ("Queued", "Profiling")
    assert world.status.met_dependencies == ["prepare"]


def test_a_job_that_is_not_there_is_waited_for_and_named() -> None:
    assert "prepare to succeed (there is no such job)" in waiting(PREPARE).message("Running")


def test_what_is_done_stays_done_when_the_other_job_is_deleted() -> None:
    world = waiting([*PREPARE, {"job": "more"}], other("prepare", "Succeeded"), other("more", "Running"))
    del world.others["prepare"]
    world.settle()
    assert "waits for more to succeed" in world.message("Running")
    world.others["more"]["status"]["phase"] = "Succeeded"
    world.settle()
    assert world.status.phase in ("Queued", "Profiling")


def test_a_job_fails_with_the_one_whose_success_it_waits_for() -> None:
    world = waiting([*PREPARE, {"job": "more"}], other("prepare", "Failed"), other("more", "Running"))
    assert (world.status.phase, world.reason("Finished")) == ("Failed", "DependencyFailed")
    assert world.status.problem is not None
    assert "prepare failed" in world.status.problem.message


def test_an_end_of_any_kind_is_enough_for_finished() -> None:
    world = waiting([{"job": "prepare", "until": "Finished"}], other("prepare", "Failed"))
    assert world.status.phase in ("Queued", "Profiling")


def test_jobs_that_wait_for_each_other_are_told_how() -> None:
    world = waiting([{"job": "b"}], other("b", "Pending", [{"job": "c"}]), other("c", "Pending", [{"job": "job"}]))
    assert world.reason("Running") == "DependencyCycle"
    assert "job waits for b waits for c waits for job" in world.message("Running")
    assert world.status.problem is not None
    world.others["c"] = other("c", "Pending")
    world.settle()
    assert world.reason("Running") == "WaitsForJobs"


def test_a_suspended_job_says_so_first_and_waits_after() -> None:
    world = waiting(PREPARE, other("prepare", "Running"))
    world.job["spec"]["suspend"] = True
    world.settle()
    assert (world.status.phase, world.reason("Running")) == ("Suspended", "Suspended")
    world.job["spec"]["suspend"] = False
    world.settle()
    assert world.reason("Running") == "WaitsForJobs"


def test_a_job_that_has_trained_waits_for_nobody() -> None:
    world = World(profile={"mode": "Skip"})
    world.settle()
    world.job["status"]["startTime"] = "2026-01-01T00:00:00Z"
    world.job["spec"]["after"] = PREPARE
    world.settle()
    assert world.status.phase == "Queued"


names = st.sampled_from("abcd")
edges = st.dictionaries(names, st.lists(names, unique=True, max_size=3), max_size=4)


def view(name: str, after: list[str]) -> JobView:
    return read_job(other(name, None, [{"job": one} for one in after]))


@given(st.lists(st.tuples(names, st.none() | st.lists(names, unique=True, max_size=3)), max_size=12))
def test_the_index_finds_all_that_wait_for_a_job_directly_or_not(changes: list[tuple[str, list[str] | None]]) -> None:
    """Against every job's own way to the jobs that it names, worked out anew."""
    index, jobs = Dependents(), dict[str, JobView]()
    for name, after in changes:
        before = jobs.get(name)
        job = None if after is None else view(name, after)
        if job is None:
            jobs.pop(name, None)
        else:
            jobs[name] = job
        found = index.update(("team", name), job)
        waiting = {
            ("team", one)
            for one, its in jobs.items()
            if name in {other.job for each in (its, *reachable(its, jobs.get).values()) for other in each.spec.after}  # type: ignore[union-attr]
        }
        same = (before is None) == (job is None) and (
            before is None or job is None or sorted(_after(before)) == sorted(_after(job))
        )
        assert found == (frozenset() if same else waiting)


def _after(job: JobView) -> list[str]:
    return [one.job for one in job.spec.after] if job.spec is not None else []
