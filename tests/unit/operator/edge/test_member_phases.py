"""News of an array's jobs reach the array, whoever wrote them: the watch brings nothing newer than an answer."""

from typing import Any

from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.members import Members
from synergy_operator.views.metadata import Key

ARRAY = ("team", "sweep")
KEY = ("team", "sweep-0")


class Told:
    """The cache, and what is made of its news."""

    def __init__(self) -> None:
        self.jobs = JobCache()
        self.members = Members(self.jobs)
        self._version = 0

    def update(self, phase: str, *, member: bool = True) -> frozenset[Key]:
        self._version += 1
        return self.members.update(KEY, self.jobs.take(_job(phase, str(self._version), member=member)))

    def drop(self) -> frozenset[Key]:
        self.jobs.drop(KEY)
        return self.members.update(KEY, None)


def _job(phase: str, version: str, *, member: bool) -> dict[str, Any]:
    owner = {"apiVersion": "kube-synergy.dev/v1alpha1", "kind": "TrainingJob", "name": "sweep", "uid": "a"}
    metadata: dict[str, Any] = {"name": "sweep-0", "namespace": "team", "uid": "m", "resourceVersion": version}
    if member:
        metadata |= {
            "labels": {"kube-synergy.dev/array-index": "0"},
            "ownerReferences": [{**owner, "controller": True}],
        }
    return {
        "metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {},
        "status": {"phase": phase},
    }


def test_an_array_is_looked_at_when_a_job_of_it_changes_its_phase_or_goes() -> None:
    told = Told()
    assert told.update("Running") == {ARRAY}
    assert told.update("Running") == frozenset()
    assert told.update("Succeeded") == {ARRAY}
    assert told.drop() == {ARRAY}
    assert told.drop() == frozenset()


def test_of_a_member_that_is_gone_nothing_is_kept() -> None:
    """Arrays make thousands of them."""
    told = Told()
    told.update("Running")
    assert (len(told.members._known), len(told.members._seen)) == (1, 1)
    told.drop()
    assert (len(told.members._known), len(told.members._seen)) == (0, 0)


def test_a_job_of_no_array_concerns_none() -> None:
    assert Told().update("Running", member=False) == frozenset()
