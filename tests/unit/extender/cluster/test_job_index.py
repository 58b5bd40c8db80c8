"""The jobs that are there, and which of their changes wake the planner."""

from typing import Any

from support.extender.cluster import allocation, job_object, key, share
from synergy_extender.cluster.jobs.index import JobIndex


def version(number: int, **status: Any) -> dict[str, Any]:
    """The job `j` at that resource version."""
    return job_object("j", status=status, resourceVersion=str(number))


def test_what_this_replica_has_decided_does_not_wake_it_and_is_known_all_the_same() -> None:
    woken: list[int] = []
    jobs = JobIndex(lambda: woken.append(1))
    jobs.observe(version(1))
    assert len(woken) == 1
    jobs.observe(version(2, allocation=allocation(share("n1"))), decided=True)
    assert len(woken) == 1
    assert jobs.views[key("j")].status.allocation is not None
    jobs.observe(version(3, allocation=allocation(share("n1")), phase="Running"))
    assert len(woken) == 2, "what another component has written does"


def test_a_job_arrives_each_time_it_begins_to_wait() -> None:
    jobs = JobIndex(lambda: None)
    counts = []
    for number, phase in enumerate(("Queued", "Queued", "Running", "Queued", "Succeeded")):
        jobs.observe(version(1 + number, phase=phase))
        counts.append(jobs.arrivals)
    assert counts == [1, 1, 1, 2, 2]


def test_an_older_answer_changes_nothing() -> None:
    jobs = JobIndex(lambda: None)
    jobs.observe(version(5, phase="Running"))
    jobs.observe(version(4, phase="Queued"))
    assert jobs.views[key("j")].status.phase == "Running"
    assert jobs.arrivals == 0


def test_a_job_that_only_an_answer_has_shown_goes_when_the_api_server_has_it_no_more() -> None:
    """The watch that begins after its end never tells of it, and it would hold its GPUs for ever."""
    woken: list[int] = []
    jobs = JobIndex(lambda: woken.append(1))
    jobs.observe(version(1))
    first = jobs.views[key("j")]
    jobs.vanished(first)
    assert (jobs.views, len(woken)) == ({}, 2)
    jobs.observe(version(2))
    assert jobs.views == {}, "a late answer does not bring it back"
    jobs.observe(job_object("j", uid="another"))
    jobs.vanished(first)
    assert jobs.views[key("j")].uid == "another"
