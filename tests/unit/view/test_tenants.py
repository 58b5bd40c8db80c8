"""The tree of Tenants for people."""

from typing import Any

import pytest

from synergy_view.tenants import gpus_in_types, tenant_rows, tenants_above

FALSE = {
    "type": "InTree",
    "status": "False",
    "reason": "UnknownParent",
    "message": "no such Tenant",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def tenant(name: str, parent: str = "", spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    told = {"parent": parent, **status} if parent or status else {}
    return {"metadata": {"name": name}, "spec": {"parent": parent, **(spec or {})}, "status": told}


def test_children_stand_below_their_parents_in_order_of_name() -> None:
    rows = tenant_rows([tenant("z"), tenant("b", "org"), tenant("org"), tenant("a", "org"), tenant("deep", "b")])
    assert [(row.tenant, row.level) for row in rows] == [("org", 0), ("a", 1), ("b", 1), ("deep", 2), ("z", 0)]


def test_a_circle_of_two_moments_ends() -> None:
    rows = tenant_rows([tenant("a", "b"), tenant("b", "a"), tenant("c")])
    assert sorted(row.tenant for row in rows) == ["a", "b", "c"]


def test_a_row_has_what_the_status_says() -> None:
    hours = {"day": {"V100": 12.5}, "week": {"V100": 80.0}, "countedUntil": "2026-01-01T00:00:00Z"}
    given = tenant(
        "a",
        spec={"limit": {"V100": 8}, "weight": 2},
        used={"V100": 4},
        guaranteed={"V100": 2},
        borrowed={"V100": 2},
        waiting={"*": 1},
        gpuHours=hours,
        conditions=[FALSE, {**FALSE, "type": "Valid", "status": "True"}],
        ofANewerVersion=1,
    )
    (row,) = tenant_rows([given])
    assert (row.used, row.guaranteed, row.borrowed, row.waiting) == ({"V100": 4}, {"V100": 2}, {"V100": 2}, {"*": 1})
    assert (row.gpu_hours_day, row.gpu_hours_week, row.limit, row.weight) == (
        {"V100": 12.5},
        {"V100": 80.0},
        {"V100": 8},
        2,
    )
    assert row.problems == ("UnknownParent: no such Tenant",)


@pytest.mark.parametrize(
    ("gpus", "text"), [({"V100": 4, "A100": 8}, "8 A100, 4 V100"), ({"*": 3}, "3"), ({}, "-"), ({"T4": 1.5}, "1.5 T4")]
)
def test_gpus_are_told_by_type(gpus: dict[str, float], text: str) -> None:
    assert gpus_in_types(gpus) == text


def test_a_job_s_tenant_and_those_above_it() -> None:
    objects = [
        tenant("org"),
        tenant("a", "org", {"namespaces": ["red"]}),
        tenant("b", "org", {"namespaceSelector": {"matchLabels": {"team": "b"}}}),
    ]
    red = {"metadata": {"name": "red"}}
    both = {"metadata": {"name": "red", "labels": {"team": "b"}}}

    def names(namespace: dict[str, Any], declared: str = "") -> list[str]:
        return [row.tenant for row in tenants_above(objects, namespace, declared)]

    assert names(red) == ["a", "org"]
    assert names(both, "b") == ["b", "org"]
    assert names(red, "b") == ["a", "org"], "a job's spec chooses among the tenants of its namespace only"
    assert names({"metadata": {"name": "elsewhere"}}) == []
