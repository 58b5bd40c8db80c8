"""What the PriorityClass of a job is worth to plans, and what budgets they keep."""

from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import NOW, cluster, job, key, node_object, team_of
from synergy_api.cluster.priority_classes import PriorityClass, PriorityClasses
from synergy_api.parts.waiting import Restriction
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_extender.snapshot.snapshot import BuiltSnapshot, build_snapshot

CLASSES = PriorityClasses(
    {
        "low": PriorityClass(-5),
        "usual": PriorityClass(10),
        "high": PriorityClass(100, urgent=True),
        "system-cluster-critical": PriorityClass(2_000_000_000, urgent=True),
    }
)


def _built(*jobs: Any, default: str = "", **caps: Any) -> BuiltSnapshot:
    state = cluster([node_object("n1")], list(jobs), tenancy=team_of("red", **caps))
    state = replace(state, classes=replace(CLASSES, default=default))
    return build_snapshot(state, mode="round", now=NOW, round_s=20)


def _one(name: str, default: str = "", **caps: Any) -> tuple[core.Job, Restriction | None]:
    built = _built(job("j", spec={"priorityClassName": name}), default=default, **caps)
    (found,) = built.snapshot.jobs
    return found, built.entitled.by_job[key("j")].restriction


@pytest.mark.parametrize(
    ("name", "default", "caps", "counts"),
    [
        ("", "", {}, (0, False)),
        ("", "usual", {}, (10, False)),
        ("low", "", {}, (-5, False)),
        ("high", "", {"maxPriority": 100}, (100, True)),
        ("high", "", {"maxPriority": 99}, (99, False)),
        ("high", "", {}, (0, False)),
        ("high", "usual", {}, (10, False)),
        ("system-cluster-critical", "", {}, (0, False)),
        ("system-cluster-critical", "", {"maxPriority": 1_000_000_000}, (1_000_000_000, False)),
        ("gone", "", {"maxPriority": 100}, (0, False)),
        ("gone", "usual", {}, (10, False)),
    ],
)
def test_a_class_counts_within_the_cap(name: str, default: str, caps: dict[str, Any], counts: tuple[int, bool]) -> None:
    found, _ = _one(name, default, **caps)
    assert (found.priority, found.urgent) == counts


def test_a_class_above_the_cap_is_told() -> None:
    told = _one("high", maxPriority=50)[1]
    assert told is not None
    assert told.reason == "TenantCapped"
    assert "spec.priorityClassName is high of value 100 and counts as 50, the cap of its tenant" in told.message
    assert _one("high", maxPriority=100)[1] is None


def test_an_unknown_class_is_told_with_the_field() -> None:
    told = _one("gone", maxPriority=50)[1]
    assert told is not None
    assert told.reason == "PriorityClassUnknown"
    assert "spec.priorityClassName is gone, and the cluster has no such PriorityClass" in told.message


def _preempted(*ago: float, rule: str = "Policy") -> dict[str, Any]:
    return {"preemptions": [{"at": format_time(NOW - one), "run": 1, "rule": rule} for one in ago]}


def test_preemptions_of_the_last_hour_reach_the_plan() -> None:
    (found,) = _built(job("j", status=_preempted(4000.0, 3000.0, -5.0))).snapshot.jobs
    assert found.preempted_s == (NOW - 3000.0, NOW)
    (found,) = _built(job("j", status=_preempted(30.0, rule="Node"))).snapshot.jobs
    assert found.preempted_s == (), "no plan chose that"


def test_a_tenants_budget_counts_jobs_that_are_in_no_plan_too() -> None:
    done = job("done", status={"phase": "Succeeded", **_preempted(10.0, 20.0)})
    built = _built(done, job("j"), maxPreemptionsPerHour=3)
    (tenant,) = built.snapshot.tenants
    assert (tenant.name, tenant.preemptions_per_hour, tenant.preempted) == ("red", 3, 2)
    unused = _built(maxPreemptionsPerHour=0).snapshot.tenants
    assert [(one.name, one.preemptions_per_hour) for one in unused] == [("red", 0)]
    assert all(one.preemptions_per_hour is None for one in _built(done, job("j")).snapshot.tenants)
