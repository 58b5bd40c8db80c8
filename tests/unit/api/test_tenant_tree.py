"""The tree that plans keep: parents that fit, guarantees that parents and the cluster can keep."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.cluster.tenancy import Tenant
from synergy_api.cluster.tenant_tree import MOST_ABOVE, TenantTree, lowered, tenant_tree
from synergy_api.reasons import Reason
from synergy_api.resources.tenant import TenantSpec

NAMES = ("a", "b", "c", "d", "e", "f")
TYPES = ("T4", "V100")
AMOUNTS = st.dictionaries(st.sampled_from(TYPES), st.integers(0, 20))
SPECS = st.fixed_dictionaries({"parent": st.sampled_from(["", "gone", *NAMES]), "guarantee": AMOUNTS})
TREES = st.dictionaries(st.sampled_from(NAMES), SPECS, max_size=6)


def tree(gpus: dict[str, int] | None = None, **specs: Any) -> TenantTree:
    tenants = [Tenant(name, TenantSpec.model_validate(spec)) for name, spec in specs.items()]
    return tenant_tree(tenants, {"V100": 16} if gpus is None else gpus)


def kept(found: TenantTree) -> dict[str, int]:
    return {name: one.guarantee.get("V100", 0) for name, one in found.tenants.items()}


def test_a_tree_that_fits_is_kept_as_it_is_written() -> None:
    found = tree(
        org={"guarantee": {"V100": 12}},
        team={"parent": "org", "guarantee": {"V100": 8}},
        other={"parent": "org", "guarantee": {"V100": 4}},
    )
    assert kept(found) == {"org": 12, "team": 8, "other": 4}
    assert found.children == {"": ("org",), "org": ("other", "team")}
    assert found.upwards("team") == ("team", "org")
    assert found.upwards("namespace/x") == ("namespace/x",)
    reasons = {
        name: (one.link and one.link.reason, one.kept and one.kept.reason) for name, one in found.tenants.items()
    }
    assert reasons == {
        "org": (None, Reason.GUARANTEE_COVERED),
        "team": (Reason.PARENT_FOUND, Reason.GUARANTEE_COVERED),
        "other": (Reason.PARENT_FOUND, Reason.GUARANTEE_COVERED),
    }


def test_a_parent_that_names_no_type_has_what_its_children_are_guaranteed() -> None:
    found = tree(org={}, team={"parent": "org", "guarantee": {"V100": 8}})
    assert kept(found) == {"org": 8, "team": 8}
    found = tree(org={"guarantee": {"V100": 0}}, team={"parent": "org", "guarantee": {"V100": 8}})
    assert kept(found) == {"org": 0, "team": 0}


def test_a_parent_that_is_not_there_makes_a_root() -> None:
    found = tree(team={"parent": "gone", "guarantee": {"V100": 8}})
    (team,) = found.tenants.values()
    assert team.parent == ""
    assert team.link is not None
    assert team.link.reason is Reason.UNKNOWN_PARENT
    assert "spec.parent names gone" in team.link.message
    assert kept(found) == {"team": 8}


def test_the_message_of_a_long_cycle_has_room_in_a_condition() -> None:
    size = 600
    names = [f"{number:03}-{'x' * 59}" for number in range(size)]
    found = tree(**{name: {"parent": names[number - 1]} for number, name in enumerate(names)})
    link = found.tenants[names[5]].link
    assert link is not None
    assert link.reason is Reason.PARENT_CYCLE
    assert names[0] in link.message
    assert len(link.message) < 2000


def test_a_cycle_makes_roots_of_its_tenants_and_leaves_those_below_it() -> None:
    found = tree(b={"parent": "c"}, c={"parent": "a"}, a={"parent": "b"}, below={"parent": "b"}, apart={})
    assert {name: one.parent for name, one in found.tenants.items()} == {
        **dict.fromkeys(("a", "b", "c", "apart"), ""),
        "below": "b",
    }
    for name in ("a", "b", "c"):
        link = found.tenants[name].link
        assert link is not None
        assert link.message.startswith("spec.parent leads back to the tenant itself: a > b > c > a")
    assert found.tenants["apart"].link is None


def test_a_tree_without_measure_is_cut() -> None:
    specs: dict[str, Any] = {"t0": {}} | {f"t{n}": {"parent": f"t{n - 1}"} for n in range(1, MOST_ABOVE + 3)}
    found = tree(**specs)
    cut = [name for name, one in found.tenants.items() if one.link and one.link.reason is Reason.TREE_TOO_DEEP]
    assert cut == [f"t{MOST_ABOVE + 1}"], "the first that is too deep; what is below it stays below it"
    assert max(len(found.upwards(name)) for name in found.tenants) == MOST_ABOVE + 1


def test_children_are_guaranteed_no_more_than_their_parent_and_hear_why() -> None:
    found = tree(
        org={"guarantee": {"V100": 6}},
        a={"parent": "org", "guarantee": {"V100": 8}},
        b={"parent": "org", "guarantee": {"V100": 4}},
        below={"parent": "a", "guarantee": {"V100": 8}},
    )
    assert kept(found) == {"org": 6, "a": 4, "b": 2, "below": 4}
    for name, gpus in (("a", 4), ("b", 2), ("below", 4)):
        told = found.tenants[name].kept
        assert told is not None
        assert told.reason is Reason.GUARANTEES_ABOVE_PARENT
        words = (
            f"the children of org are guaranteed 12 V100 together, and org has 6; plans guarantee this tenant {gpus}"
        )
        assert words in told.message
    assert found.tenants["org"].kept is not None
    assert found.tenants["org"].kept.reason is Reason.GUARANTEE_COVERED


def test_the_cluster_s_gpus_lower_all_roots_alike_and_rise_again() -> None:
    specs = {"a": {"guarantee": {"V100": 12}}, "b": {"guarantee": {"V100": 4}}, "c": {"guarantee": {"T4": 1}}}
    found = tree({"V100": 8, "T4": 1}, **specs)
    assert kept(found) == {"a": 6, "b": 2, "c": 0}
    told = found.tenants["a"].kept
    assert told is not None
    assert told.reason is Reason.GUARANTEES_ABOVE_CLUSTER
    assert "all tenants are guaranteed 16 V100 together, and the cluster has 8; plans guarantee this tenant 6" in (
        told.message
    )
    assert found.tenants["c"].kept is not None
    assert found.tenants["c"].kept.reason is Reason.GUARANTEE_COVERED
    assert kept(tree({"V100": 16, "T4": 1}, **specs)) == {"a": 12, "b": 4, "c": 0}


def test_children_s_guarantees_do_not_lift_a_parent_above_its_limit() -> None:
    found = tree(org={"limit": {"V100": 4}}, a={"parent": "org", "guarantee": {"V100": 8}})
    assert kept(found) == {"org": 4, "a": 4}
    told = found.tenants["org"].kept
    assert told is not None
    assert told.reason is Reason.GUARANTEE_ABOVE_LIMIT
    assert "would be guaranteed 8 V100, and its spec.limit allows 4" in told.message


@pytest.mark.parametrize("said", [{"parent": "b"}, {"guarantee": {"V100": 1}}, {"limit": {"V100": 1}}])
def test_tenants_that_only_name_namespaces_make_no_tree(said: dict[str, Any]) -> None:
    assert not tree(a={"namespaces": ["x"]}, b={}).shares_gpus
    assert tree(a=said, b={}).shares_gpus


@given(TREES, AMOUNTS)
def test_every_level_keeps_to_what_is_above_it(specs: dict[str, Any], gpus: dict[str, int]) -> None:
    found = tree(gpus, **specs)
    for kind in TYPES:
        for parent, names in found.children.items():
            have = found.tenants[parent].guarantee.get(kind, 0) if parent else gpus.get(kind, 0)
            assert sum(found.tenants[name].guarantee.get(kind, 0) for name in names) <= have
    for name, one in found.tenants.items():
        assert found.upwards(name)[-1] in found.children[""], "every way up ends at a root"
        assert all(one.guarantee.get(kind, 0) <= specs[name]["guarantee"].get(kind, 1000) for kind in TYPES)
        short = any(one.guarantee.get(kind, 0) < gpus for kind, gpus in specs[name]["guarantee"].items())
        assert (one.kept is not None and one.kept.reason is not Reason.GUARANTEE_COVERED) or not short


@given(st.lists(st.integers(0, 50), max_size=6), st.integers(0, 100))
def test_lowering_gives_all_there_is_in_proportion(asked: list[int], given_: int) -> None:
    parts = lowered(asked, given_)
    assert sum(parts) == min(sum(asked), given_)
    assert all(part <= one for part, one in zip(parts, asked, strict=True))
    if sum(asked) > given_:
        exact = [one * given_ / sum(asked) for one in asked]
        assert all(abs(part - one) < 1 for part, one in zip(parts, exact, strict=True))
