"""News of an array's jobs reach the array, whoever wrote them: the watch brings nothing newer than an answer."""

from typing import Any

from synergy_operator.edge.caches.members import MemberPhases
from synergy_operator.views.job import JobView, read_job

ARRAY = ("team", "sweep")
KEY = ("team", "sweep-0")


def job(phase: str, *, member: bool = True) -> JobView:
    owner = {"apiVersion": "kube-synergy.dev/v1alpha1", "kind": "TrainingJob", "name": "sweep", "uid": "a"}
    metadata: dict[str, Any] = {"name": "sweep-0", "namespace": "team", "uid": "m", "resourceVersion": "1"}
    if member:
        metadata |= {
            "labels": {"kube-synergy.dev/array-index": "0"},
            "ownerReferences": [{**owner, "controller": True}],
        }
    return read_job(
        {"metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}, "status": {"phase": phase}}
    )


def test_an_array_is_looked_at_when_a_job_of_it_changes_its_phase_or_goes() -> None:
    phases = MemberPhases()
    assert phases.update(KEY, job("Running")) == ARRAY
    assert phases.update(KEY, job("Running")) is None
    assert phases.update(KEY, job("Succeeded")) == ARRAY
    assert phases.update(KEY, None) == ARRAY
    assert phases.update(KEY, None) is None


def test_a_job_of_no_array_concerns_none() -> None:
    assert MemberPhases().update(KEY, job("Running", member=False)) is None
