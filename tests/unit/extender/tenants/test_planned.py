"""The tenants that a plan knows: the policy's, the tree's, and those of jobs."""

from typing import Any

from support.extender.cluster import NOW, cluster, job, node_object
from synergy_api.cluster.tenancy import read_tenancy
from synergy_core.model import snapshot as core
from synergy_core.model.snapshot import tenant_problems
from synergy_extender.snapshot.snapshot import build_snapshot


def tenants(specs: dict[str, Any], named: tuple[core.Tenant, ...] = ()) -> dict[str, core.Tenant]:
    """Those of a cluster of 8 V100 with a job of namespace `team`."""
    objects = [{"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]
    tenancy = read_tenancy(objects, [{"metadata": {"name": "team"}}])
    state = cluster([node_object("n1")], [job("j")], tenancy=tenancy)
    built = build_snapshot(state, mode="round", now=NOW, round_s=20, tenants=named)
    assert list(tenant_problems(built.snapshot.tenants)) == []
    return {tenant.name: tenant for tenant in built.snapshot.tenants}


def test_the_tree_is_in_the_snapshot_with_ancestors_that_have_no_jobs() -> None:
    found = tenants(
        {
            "org": {"guarantee": {"V100": 6}, "limit": {"V100": 8}},
            "vision": {
                "namespaces": ["team"],
                "parent": "org",
                "weight": 2,
                "guarantee": {"V100": 4},
                "borrowing": {"V100": 1},
                "lending": {"V100": 3},
            },
        }
    )
    assert found == {
        "org": core.Tenant("org", guarantee={"V100": 6}, limit={"V100": 8}),
        "vision": core.Tenant(
            "vision", 2.0, parent="org", guarantee={"V100": 4}, borrowing={"V100": 1}, lending={"V100": 3}
        ),
    }


def test_a_tree_that_is_wrong_is_planned_as_far_as_it_is_right() -> None:
    found = tenants(
        {
            "a": {"parent": "b", "guarantee": {"V100": 12}},
            "b": {"parent": "a", "guarantee": {"V100": 4}},
            "c": {"parent": "gone", "namespaces": ["team"]},
            "below": {"parent": "a", "guarantee": {"V100": 20}},
            "bad": {"weight": -1},
        }
    )
    assert {name: tenant.parent for name, tenant in found.items()} == {"a": None, "b": None, "below": "a", "c": None}
    assert {name: dict(tenant.guarantee) for name, tenant in found.items()} == {
        "a": {"V100": 6},
        "b": {"V100": 2},
        "below": {"V100": 6},
        "c": {},
    }


def test_without_a_word_of_gpus_only_tenants_of_jobs_are_there() -> None:
    specs = {"vision": {"namespaces": ["team"], "weight": 3}, "speech": {"namespaces": ["other"]}}
    assert tenants(specs) == {"vision": core.Tenant("vision", 3.0)}
    assert tenants({}) == {}


def test_a_policy_s_weight_is_stronger_and_the_tree_keeps_its_gpus() -> None:
    named = (core.Tenant("vision", 5.0, "fifo"), core.Tenant("elsewhere", 2.0))
    found = tenants({"vision": {"namespaces": ["team"], "weight": 3, "guarantee": {"V100": 4}}}, named)
    assert found == {
        "vision": core.Tenant("vision", 5.0, "fifo", guarantee={"V100": 4}),
        "elsewhere": core.Tenant("elsewhere", 2.0),
    }
