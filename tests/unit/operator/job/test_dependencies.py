"""Jobs that wait for other jobs."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.operator.before import jobs_before
from support.operator.objects import job_manifest
from support.operator.world import World
from synergy_operator.edge.caches.dependents import Dependents
from synergy_operator.job.dependencies import Dependencies, dependencies
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


def test_of_a_long_cycle_the_message_shows_its_beginning_and_its_end() -> None:
    chain = [other(f"j{number}", "Pending", [{"job": f"j{number + 1}"}]) for number in range(400)]
    world = waiting([{"job": "j0"}], *chain, other("j400", "Pending", [{"job": "job"}]))
    assert world.reason("Running") == "DependencyCycle"
    assert "job waits for j0 waits for j1 " in world.message("Running")
    assert "j12 waits for ... waits for job" in world.message("Running")
    assert len(world.message("Running")) < 1000


def test_the_search_for_a_cycle_remembers_each_job_once_and_not_each_way_to_it() -> None:
    jobs = {f"j{i}": view(f"j{i}", [f"j{other}" for other in range(max(0, i - 32), i)]) for i in range(200)}
    last = jobs["j199"]
    index = Dependents()
    for job in jobs.values():
        index.update(job.key, job)
    tracemalloc.start()
    assert index.cycle(last) == ()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 200_000


def test_the_end_of_a_job_concerns_those_that_name_it_and_not_the_whole_chain() -> None:
    index = Dependents()
    for number in range(100):
        index.update(("team", f"j{number}"), view(f"j{number}", [f"j{number - 1}"] if number else []))
    assert index.update(("team", "j0"), view("j0", [], "Succeeded")) == {("team", "j1")}


names = st.sampled_from("abcd")
states = st.tuples(st.lists(names, unique=True, max_size=3), st.sampled_from([None, "Running", "Succeeded", "Failed"]))


def view(name: str, after: list[str], phase: str | None = None) -> JobView:
    return read_job(other(name, phase, [{"job": one} for one in after]))


@given(st.lists(st.tuples(names, st.none() | states), max_size=12))
@example([("a", (["b"], None)), ("b", (["c"], None)), ("c", (["a"], None)), ("c", ([], None))])
def test_the_index_finds_each_job_of_which_something_else_is_to_be_told(
    changes: list[tuple[str, tuple[list[str], str | None] | None]],
) -> None:
    """Against what every job waits for, worked out anew before and after."""
    index, jobs = Dependents(), dict[str, JobView]()
    for name, made in changes:
        before = _all(jobs)
        if made is None:
            jobs.pop(name, None)
        else:
            jobs[name] = view(name, *made)
        found = index.update(("team", name), jobs.get(name))
        after = _all(jobs)
        assert all(index.cycle(job) == jobs_before(job, jobs.get)["cycle"] for job in jobs.values())
        changed = {("team", one) for one in after if one != name and before[one] != after[one]}
        assert changed <= found


def _all(jobs: dict[str, JobView]) -> dict[str, Dependencies]:
    seen = {name: jobs_before(job, jobs.get) for name, job in jobs.items()}
    return {name: dependencies(job, seen[name]["named_phases"], seen[name]["cycle"]) for name, job in jobs.items()}
