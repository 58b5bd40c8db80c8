"""Who belongs to which tenant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from synergy_api.cluster.tenancy import DEFAULT_CAPS, Tenancy, read_tenancy
from synergy_api.resources.tenant import TenantSpec

NAMES = ("a", "b", "c", "d")
KEYS = ("team", "tier")
VALUES = ("x", "y")


def tenant(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def requirement() -> st.SearchStrategy[dict[str, Any]]:
    keys, values = st.sampled_from(KEYS), st.lists(st.sampled_from(VALUES), min_size=1, unique=True)
    with_values = st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(["In", "NotIn"]), "values": values})
    return with_values | st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(["Exists", "DoesNotExist"])})


SELECTORS = st.fixed_dictionaries(
    {
        "matchLabels": st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)),
        "matchExpressions": st.lists(requirement(), max_size=2),
    }
)
SPECS = st.fixed_dictionaries(
    {"namespaces": st.lists(st.sampled_from(NAMES), unique=True, max_size=3), "default": st.booleans()},
    optional={"namespaceSelector": SELECTORS},
)
TENANTS = st.dictionaries(st.sampled_from([*NAMES, "t1", "t2"]), SPECS, max_size=5)
NAMESPACES = st.dictionaries(
    st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)), min_size=1
)


def read(tenants: dict[str, Any], namespaces: dict[str, dict[str, str]]) -> Tenancy:
    return read_tenancy(
        [{"metadata": {"name": name}, "spec": spec} for name, spec in tenants.items()],
        [{"metadata": {"name": name, "labels": labels}} for name, labels in namespaces.items()],
    )


def said(spec: dict[str, Any], name: str, labels: dict[str, str]) -> bool:
    """Membership, in the words of Kubernetes' documentation of label selectors."""
    if name in spec["namespaces"]:
        return True
    if "namespaceSelector" not in spec:
        return False
    selector = spec["namespaceSelector"]
    if any(labels.get(key) != value for key, value in selector["matchLabels"].items()):
        return False
    for one in selector["matchExpressions"]:
        there = one["key"] in labels
        among = there and labels[one["key"]] in one.get("values", [])
        meets = {"In": among, "NotIn": not among, "Exists": there, "DoesNotExist": not there}
        if not meets[one["operator"]]:
            return False
    return True


@given(TENANTS, NAMESPACES)
def test_a_namespace_belongs_to_the_tenants_that_name_or_select_it(
    tenants: dict[str, Any], namespaces: dict[str, dict[str, str]]
) -> None:
    tenancy = read(tenants, namespaces)
    for name, labels in namespaces.items():
        found = {one.name for one in tenancy.tenants_of(name)}
        assert found == {other for other, spec in tenants.items() if said(spec, name, labels)}
    for name, spec in tenants.items():
        assert tenancy.namespaces_of(name) == sum(said(spec, other, labels) for other, labels in namespaces.items())


@given(TENANTS, NAMESPACES, st.sampled_from(["", *NAMES, "t1", "t2", "unknown"]))
def test_what_a_job_says_only_chooses_among_its_namespace_s_tenants(
    tenants: dict[str, Any], namespaces: dict[str, dict[str, str]], declared: str
) -> None:
    tenancy = read(tenants, namespaces)
    for name in namespaces:
        own = {one.name for one in tenancy.tenants_of(name)}
        found, without = tenancy.established(name, declared), tenancy.established(name, "")
        assert set(found.allowed) == own or not own
        assert found.name == (declared if declared in own else without.name)
        assert found.refused == (declared not in ("", found.name))
        if not own:
            assert found.caps == DEFAULT_CAPS


@given(TENANTS, NAMESPACES, st.sampled_from(["", *NAMES, "t1", "t2"]))
def test_no_two_namespaces_are_of_one_tenant_unless_a_tenant_says_so(
    tenants: dict[str, Any], namespaces: dict[str, dict[str, str]], declared: str
) -> None:
    tenancy = read(tenants, namespaces)
    for first in namespaces:
        for second in namespaces:
            one, other = tenancy.established(first, declared), tenancy.established(second, declared)
            if first != second and one.name == other.name:
                assert one.name in {t.name for t in tenancy.tenants_of(first)}
                assert one.name in {t.name for t in tenancy.tenants_of(second)}


def test_a_namespace_does_not_become_a_tenant_by_taking_its_name() -> None:
    tenancy = read_tenancy([tenant("vision", namespaces=["a"])], [namespace("a"), namespace("vision")])
    assert tenancy.established("a", "").name == "vision"
    assert tenancy.established("vision", "").name == "namespace/vision"
    taken = tenancy.established("vision", "vision")
    assert (taken.name, taken.refused) == ("namespace/vision", True)


def test_a_job_that_names_no_tenant_counts_for_the_default_one_else_the_first() -> None:
    both = [tenant("x", namespaces=["a"]), tenant("y", namespaces=["a"], default=True)]
    assert read_tenancy(both, []).established("a", "").name == "y"
    both[1]["spec"]["default"] = False
    assert read_tenancy(both, []).established("a", "").name == "x"


def test_a_selector_selects_no_namespace_that_has_not_been_seen() -> None:
    everywhere = [tenant("all", namespaceSelector={})]
    assert read_tenancy(everywhere, [namespace("a")]).established("a", "").name == "all"
    assert read_tenancy(everywhere, []).established("a", "").name == "a"


def test_a_tenant_that_does_not_parse_has_no_namespace_and_keeps_its_name() -> None:
    tenancy = read_tenancy([tenant("bad", namespaces=["a"], weight=-1)], [namespace("a"), namespace("bad")])
    assert tenancy.problems["bad"].startswith("spec.weight: ")
    assert tenancy.established("a", "").name == "a"
    assert tenancy.established("bad", "").name == "namespace/bad"


@pytest.mark.parametrize(
    "spec",
    [
        {"caps": {"maxWeight": 0}},
        {"caps": {"maxNeverPreemptedGPUs": -1}},
        {"caps": {"deadlines": "Maybe"}},
        {"namespaces": ["Not a name"]},
        {"namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "In"}]}},
        {"namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "Exists", "values": ["v"]}]}},
    ],
)
def test_bad_fields_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TenantSpec.model_validate(spec)
