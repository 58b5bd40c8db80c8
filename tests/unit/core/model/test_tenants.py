"""The tree of tenants: what is wrong with one is named, and what can be kept of it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner import planning
from support.planner.sound_trees import sound
from synergy_core.model.snapshot import FieldError, Snapshot, Tenant, check_tenants, tenant_problems
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot, snapshot_document

NODE = planning.node("n0", 8, cpus=24, gib=480)
ORG = Tenant("org", guarantee={"V100": 8}, limit={"V100": 8})
TEAM = Tenant("team", 2.0, parent="org", guarantee={"V100": 4}, borrowing={"V100": 2}, lending={"V100": 0})


def test_a_tree_survives_its_json_form() -> None:
    snapshot = Snapshot(nodes=(NODE,), jobs=(), tenants=(ORG, TEAM, Tenant("plain")))
    document = snapshot_document(snapshot)
    assert document["tenants"][2] == {"name": "plain", "weight": 1.0, "policy": "fairness"}
    assert parse_snapshot(json.dumps(document)) == snapshot


@pytest.mark.parametrize(
    ("tenants", "problem"),
    [
        ((TEAM,), r"tenants\[0\].parent: 'org' is not in tenants; add it there, or leave parent out"),
        ((Tenant("a", parent="a"),), r"tenants\[0\].parent: 'a' is below 'a' itself; choose another parent"),
        ((Tenant("a", parent="b"), Tenant("b", parent="a")), r"tenants\[0\].parent: 'b' is below 'a' itself"),
        (
            (Tenant("a", guarantee={"V100": 3}, limit={"V100": 2}),),
            r"tenants\[0\].guarantee.V100: 3 is above limit.V100 2; lower it",
        ),
        (
            (ORG, TEAM, Tenant("other", parent="org", guarantee={"V100": 5})),
            r"tenants\[0\].guarantee.V100: 8 is below 9, the sum of its children's; raise it, or lower theirs",
        ),
        (
            (Tenant("org"), TEAM),
            r"tenants\[0\].guarantee.V100: 0 is below 4, the sum of its children's; raise it, or lower theirs",
        ),
        ((Tenant("a"), Tenant("a")), r"tenants\[1\].name: 'a' is also tenants\[0\]; names must differ"),
    ],
)
def test_what_is_wrong_with_a_tree_is_named(tenants: tuple[Tenant, ...], problem: str) -> None:
    with pytest.raises(FieldError, match=problem):
        check_tenants(tenants)


def test_a_file_with_a_bad_tree_is_refused_by_field() -> None:
    document = {"nodes": [], "jobs": [], "tenants": [{"name": "a", "guarantee": {"V100": -1}}]}
    with pytest.raises(SnapshotError, match=r"tenants\[0\].guarantee.V100: input should be greater than or equal to 0"):
        parse_snapshot(json.dumps(document))


NAMES = ("a", "b", "c", "d")
AMOUNTS = st.dictionaries(st.sampled_from(("V100", "A100")), st.integers(0, 6))
TREES = st.lists(st.sampled_from(NAMES), unique=True).flatmap(
    lambda names: st.tuples(
        *(
            st.builds(Tenant, st.just(name), parent=st.sampled_from((None, *NAMES)), guarantee=AMOUNTS, limit=AMOUNTS)
            for name in names
        )
    )
)


@given(TREES)
def test_any_tree_can_be_made_sound(tenants: tuple[Tenant, ...]) -> None:
    kept = sound(tenants)
    check_tenants(kept)
    assert [(one.name, one.limit) for one in kept] == [(one.name, one.limit) for one in tenants]
    if not list(tenant_problems(tenants)):
        assert kept == tenants


def test_a_guarantee_is_cut_to_what_the_parent_has_left_beside_earlier_siblings() -> None:
    tenants = (
        Tenant("org", guarantee={"V100": 6}, limit={"V100": 5}),
        Tenant("x", parent="org", guarantee={"V100": 4}),
        Tenant("y", parent="org", guarantee={"V100": 4}),
        Tenant("lost", parent="gone", guarantee={"V100": 1}),
    )
    assert [(one.parent, one.guarantee) for one in sound(tenants)] == [
        (None, {"V100": 5}),
        ("org", {"V100": 4}),
        ("org", {"V100": 1}),
        (None, {"V100": 1}),
    ]
