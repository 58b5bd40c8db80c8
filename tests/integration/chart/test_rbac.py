"""The rights that the chart gives: no more than the components say they need."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

Rendered = dict[tuple[str, str], dict[str, Any]]

pytestmark = pytest.mark.timeout(1800)

OWN_ROLES = ("kube-synergy-operator", "kube-synergy-extender")
WRITES = {"create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate"}

ASKED = ("RoleBinding", "kube-synergy-dashboard-asked", "system:authenticated")
"""The one binding of a group: `dashboard.askedBy`."""


def _rules(objects: Rendered) -> Iterator[tuple[str, dict[str, Any]]]:
    for (kind, name), item in objects.items():
        if kind in ("Role", "ClusterRole"):
            for rule in item["rules"]:
                yield name, rule


def _grants(objects: Rendered, role: str) -> set[tuple[str, str]]:
    """What a ClusterRole grants, as (resource, verb)."""
    rules = objects["ClusterRole", role]["rules"]
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def test_no_rule_has_a_wildcard(objects: Rendered) -> None:
    for name, rule in _rules(objects):
        for part in ("apiGroups", "resources", "verbs"):
            assert not [value for value in rule[part] if "*" in value], name


def test_nobody_may_change_rights_and_the_certificate_job_alone_reads_its_own_secrets(objects: Rendered) -> None:
    resources = {resource for _, rule in _rules(objects) for resource in rule["resources"]}
    forbidden = {"serviceaccounts", "roles", "clusterroles", "rolebindings", "clusterrolebindings"}
    assert not resources & forbidden
    assert not resources & {"pods/exec", "pods/attach", "pods/portforward", "nodes/proxy", "serviceaccounts/token"}
    about_secrets = [(name, rule) for name, rule in _rules(objects) if "secrets" in rule["resources"]]
    certificates = {"kube-synergy-certificates", "kube-synergy-certificates-install"}
    assert {name for name, _ in about_secrets} == {*certificates, "kube-synergy-operator"}
    for name, rule in about_secrets:
        if name == "kube-synergy-operator":
            assert rule["verbs"] == ["create"], "a gang's key; the operator reads none and changes none"
            continue
        assert ("Role", name) in objects
        assert rule["verbs"] == ["create"] or (rule["verbs"], len(rule["resourceNames"])) == (["get", "update"], 3)


def test_the_extender_binds_pods_and_changes_them_in_no_other_way(objects: Rendered) -> None:
    writes = {(resource, verb) for resource, verb in _grants(objects, "kube-synergy-extender") if verb in WRITES}
    assert writes == {
        ("trainingjobs/status", "patch"),
        ("gpupools/status", "patch"),
        ("schedulingpolicies/status", "patch"),
        ("tenants/status", "patch"),
        ("pods/binding", "create"),
        ("events", "create"),
        ("tokenreviews", "create"),
        ("subjectaccessreviews", "create"),
    }


def test_nodes_are_marked_and_asked_for_only_where_autoscaling_is_on(
    objects: Rendered, render: Callable[..., Rendered]
) -> None:
    assert ("Role", "kube-synergy-autoscaling") not in objects
    grown = render("autoscaling.enabled=true")
    more = _grants(grown, "kube-synergy-extender") - _grants(objects, "kube-synergy-extender")
    assert more == {("nodes", "patch")}
    rules = grown["Role", "kube-synergy-autoscaling"]["rules"]
    assert {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]} == {
        *(("provisioningrequests", verb) for verb in ("list", "watch", "create", "delete")),
        *(("podtemplates", verb) for verb in ("create", "patch")),
    }
    (subject,) = grown["RoleBinding", "kube-synergy-autoscaling"]["subjects"]
    assert subject["name"] == "kube-synergy-extender"
    for rendered, value in ((objects, "false"), (grown, "true")):
        (container,) = rendered["Deployment", "kube-synergy-extender"]["spec"]["template"]["spec"]["containers"]
        assert {"name": "SYNERGY_AUTOSCALING", "value": value} in container["env"]


def test_the_operator_binds_nothing_and_makes_and_changes_jobs_of_arrays(objects: Rendered) -> None:
    grants = _grants(objects, "kube-synergy-operator")
    assert ("pods/binding", "create") not in grants
    writes = {verb for resource, verb in grants if resource == "trainingjobs" and verb in WRITES}
    assert writes == {"create", "patch", "delete"}, "create and patch: an array's jobs"
    assert not {resource for resource, verb in grants if resource == "nodes" and verb in WRITES}


def test_the_operator_deletes_profiles_and_nobody_else_writes_them(objects: Rendered) -> None:
    writes = {
        (name, verb)
        for name, rule in _rules(objects)
        if "throughputprofiles" in rule["resources"]
        for verb in WRITES & set(rule["verbs"])
    }
    assert writes == {("kube-synergy-operator", verb) for verb in ("create", "patch", "delete")}


def test_kinds_that_are_managed_are_the_only_ones_that_the_operator_may_change(
    objects: Rendered, render: Callable[..., Rendered]
) -> None:
    plain = _grants(objects, "kube-synergy-operator")
    managed = _grants(render("operator.managedKinds={Job,PyTorchJob}"), "kube-synergy-operator")
    follow = {("pytorchjobs", verb) for verb in ("list", "watch", "patch")}
    assert managed - plain == {("jobs", "patch"), *follow}


@pytest.mark.parametrize(
    "component", ["operator", "extender", "scheduler", "certificates", "certificates-install", "definitions"]
)
def test_each_service_account_is_bound_to_roles_of_its_own(objects: Rendered, component: str) -> None:
    account = f"kube-synergy-{component}"
    assert ("ServiceAccount", account) in objects
    bound = {
        item["roleRef"]["name"]
        for (kind, _), item in objects.items()
        if kind in ("ClusterRoleBinding", "RoleBinding")
        and [subject["name"] for subject in item["subjects"]] == [account]
    }
    expected = {
        "operator": {"kube-synergy-operator"},
        "extender": {"kube-synergy-extender", "kube-synergy-extender-leader"},
        "definitions": {"kube-synergy-definitions"},
        "certificates": {"kube-synergy-certificates"},
        "certificates-install": {"kube-synergy-certificates-install"},
        "scheduler": {"system:kube-scheduler", "system:volume-scheduler", "kube-synergy-scheduler-leader"},
    }
    assert bound == expected[component]


def test_the_group_that_may_ask_the_dashboard_may_read_its_service_and_nothing_else(objects: Rendered) -> None:
    asked = {"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": ["kube-synergy-dashboard:http"]}
    assert objects["Role", "kube-synergy-dashboard-asked"]["rules"] == [{**asked, "verbs": ["get"]}]


def test_every_binding_refers_to_a_role_that_exists_and_an_account_of_the_release(objects: Rendered) -> None:
    for (kind, _), item in objects.items():
        if kind in ("ClusterRoleBinding", "RoleBinding"):
            role = item["roleRef"]
            assert (role["kind"], role["name"]) in objects or role["name"].startswith("system:")
            for subject in item["subjects"]:
                if subject["kind"] == "Group":
                    assert (kind, role["name"], subject["name"]) == ASKED
                    continue
                assert ("ServiceAccount", subject["name"]) in objects
                assert subject["namespace"] == "somewhere"


@pytest.mark.parametrize("component", ["extender", "scheduler"])
def test_leases_are_named_wherever_kubernetes_allows_it(objects: Rendered, component: str) -> None:
    rules = objects["Role", f"kube-synergy-{component}-leader"]["rules"]
    for rule in rules:
        assert rule["resources"] == ["leases"]
        assert rule["verbs"] == ["create"] or rule["resourceNames"] == [f"kube-synergy-{component}"]


def test_people_get_training_jobs_through_the_clusters_own_roles(objects: Rendered) -> None:
    view, edit = objects["ClusterRole", "kube-synergy-view"], objects["ClusterRole", "kube-synergy-edit"]
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    assert view["metadata"]["labels"][f"{prefix}view"] == "true"
    assert f"{prefix}view" not in edit["metadata"]["labels"]
    assert not {verb for rule in view["rules"] for verb in rule["verbs"]} & WRITES
    assert "trainingjobs/status" not in {resource for rule in edit["rules"] for resource in rule["resources"]}
