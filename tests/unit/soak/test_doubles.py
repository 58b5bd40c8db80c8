"""A job that runs twice at once is seen; runs one after the other are not."""

from typing import Any

from soak.doubles import Doubles
from synergy_kube import Change, KubeClient


def pod(name: str, run: int, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    labels = {"kube-synergy.dev/role": "worker", "kube-synergy.dev/job": "j", "kube-synergy.dev/run": str(run)}
    return {"metadata": {"name": name, "namespace": "n", "labels": labels, **metadata}, "status": {"phase": phase}}


def observed(*changes: tuple[dict[str, Any] | None, dict[str, Any] | None]) -> list[str]:
    watches = Doubles(KubeClient.__new__(KubeClient), "n")  # what it is told comes from here
    for old, new in changes:
        one = new or old or {}
        watches.changed(Change(("n", one["metadata"]["name"]), old, new))
    return watches.broken


def test_two_runs_at_once_are_doubled() -> None:
    found = observed((None, pod("j-1-0", 1)), (None, pod("j-2-0", 2)), (pod("j-2-0", 2), pod("j-2-0", 2)))
    assert found == ["j has runs 1, 2 at once"]


def test_workers_of_one_run_are_not() -> None:
    assert observed((None, pod("j-1-0", 1)), (None, pod("j-1-1", 1))) == []


def test_a_run_after_another_is_not() -> None:
    first, going = pod("j-1-0", 1), pod("j-1-0", 1, deletionTimestamp="2027-01-01T00:00:00Z")
    assert observed((None, first), (first, going), (None, pod("j-2-0", 2))) == []
    assert observed((None, first), (first, pod("j-1-0", 1, "Succeeded")), (None, pod("j-2-0", 2))) == []
    assert observed((None, first), (first, None), (None, pod("j-2-0", 2))) == []


def test_a_pod_that_waits_or_is_of_others_is_not() -> None:
    other = pod("x", 1)
    other["metadata"]["labels"] = {}
    assert observed((None, pod("j-1-0", 1)), (None, pod("j-2-0", 2, "Pending")), (None, other)) == []
