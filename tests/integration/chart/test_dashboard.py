"""The dashboard's Deployment: it only reads, keeps its history, and can be switched off by one value."""

from collections.abc import Callable
from typing import Any

import pytest

Rendered = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Rendered]

pytestmark = pytest.mark.timeout(1800)

NAME = "kube-synergy-dashboard"


def _pod(objects: Rendered) -> dict[str, Any]:
    pod: dict[str, Any] = objects["Deployment", NAME]["spec"]["template"]["spec"]
    return pod


def _environment(objects: Rendered) -> dict[str, Any]:
    (container,) = _pod(objects)["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def _history(objects: Rendered) -> dict[str, Any]:
    return next(volume for volume in _pod(objects)["volumes"] if volume["name"] == "history")


def test_one_value_switches_all_of_it_off(render: Render) -> None:
    objects, without = render(), render("dashboard.enabled=false")
    gone = objects.keys() - without.keys()
    assert ("Deployment", NAME) in gone
    assert all(name.startswith(NAME) for _, name in gone)
    assert not [name for _, name in without if name.startswith(NAME)]
    for key, item in without.items():
        assert item == objects[key], key


def test_it_may_read_and_ask_who_somebody_is_and_nothing_else(objects: Rendered) -> None:
    for rule in objects["ClusterRole", NAME]["rules"]:
        if rule["apiGroups"] in (["authentication.k8s.io"], ["authorization.k8s.io"]):
            assert rule["verbs"] == ["create"]
            assert set(rule["resources"]) <= {"tokenreviews", "subjectaccessreviews"}
        else:
            assert set(rule["verbs"]) <= {"get", "list", "watch"}
            assert "secrets" not in rule["resources"]
    bound = [
        item["roleRef"]["name"]
        for (kind, _), item in objects.items()
        if kind in ("ClusterRoleBinding", "RoleBinding") and item["subjects"][0]["name"] == NAME
    ]
    assert bound == [NAME]


def test_its_viewer_sees_training_jobs_and_nothing_else(objects: Rendered) -> None:
    (rule,) = objects["ClusterRole", f"{NAME}-viewer"]["rules"]
    assert rule["resources"] == ["trainingjobs"]
    assert set(rule["verbs"]) == {"get", "list", "watch"}
    assert objects["ServiceAccount", f"{NAME}-viewer"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("value", "storage_class"),
    [("dashboard.persistence.enabled=true", None), ("dashboard.persistence.storageClass=fast", "fast")],
)
def test_a_wanted_volume_has_the_history_and_outlives_an_uninstall(
    render: Render, value: str, storage_class: str | None
) -> None:
    objects = render(value)
    claim = objects["PersistentVolumeClaim", NAME]
    assert claim["spec"].get("storageClassName") == storage_class
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert _history(objects)["persistentVolumeClaim"]["claimName"] == NAME
    (container,) = _pod(objects)["containers"]
    folder = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "history")
    assert _environment(objects)["SYNERGY_DASHBOARD_DATABASE"].startswith(f"sqlite:///{folder}/")


@pytest.mark.parametrize(
    ("values", "volume"),
    [
        ((), {"emptyDir": {"sizeLimit": "5Gi"}}),
        (("dashboard.persistence.size=1Gi",), {"emptyDir": {"sizeLimit": "1Gi"}}),
        (("dashboard.persistence.claim=mine",), {"persistentVolumeClaim": {"claimName": "mine"}}),
        (("dashboard.database.secret=db",), {"emptyDir": {"sizeLimit": "5Gi"}}),
        (("dashboard.database.secret=db", "dashboard.persistence.enabled=true"), {"emptyDir": {"sizeLimit": "5Gi"}}),
    ],
)
def test_no_claim_is_made_where_the_history_is_elsewhere(
    render: Render, values: tuple[str, ...], volume: dict[str, Any]
) -> None:
    given = render(*values)
    assert ("PersistentVolumeClaim", NAME) not in given
    assert _history(given) == {"name": "history", **volume}


def test_a_database_of_your_own_is_reached_and_its_address_stays_in_the_secret(render: Render) -> None:
    given = render("dashboard.database.secret=db", "dashboard.database.port=6432")
    reference = _environment(given)["SYNERGY_DASHBOARD_DATABASE"]
    assert reference == {"secretKeyRef": {"name": "db", "key": "url"}}
    ports = [port["port"] for rule in given["NetworkPolicy", NAME]["spec"]["egress"] for port in rule["ports"]]
    assert 6432 in ports


def test_the_page_is_open_to_the_named_peers_only(render: Render, objects: Rendered) -> None:
    def open_to(given: Rendered) -> list[Any]:
        rules = given["NetworkPolicy", NAME]["spec"]["ingress"]
        return [rule["from"] for rule in rules if {"protocol": "TCP", "port": 8080} in rule["ports"]]

    assert open_to(objects) == []
    peer = "dashboard.networkFrom[0].podSelector.matchLabels.app"
    assert open_to(render(f"{peer}=proxy")) == [[{"podSelector": {"matchLabels": {"app": "proxy"}}}]]


def test_a_proxy_is_trusted_only_with_its_secret(render: Render, objects: Rendered) -> None:
    assert not [name for name in _environment(objects) if "PROXY" in name]
    given = render("dashboard.trustedProxy.secret=proxy")
    environment = _environment(given)
    assert environment["SYNERGY_DASHBOARD_TRUSTED_PROXY"] == "true"
    (container,) = _pod(given)["containers"]
    folder = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "proxy")
    assert environment["SYNERGY_DASHBOARD_PROXY_SECRET_FILE"] == f"{folder}/secret"


def test_users_may_ask_it_through_the_api_server_and_nothing_but_it(render: Render, objects: Rendered) -> None:
    role, binding = objects["Role", f"{NAME}-asked"], objects["RoleBinding", f"{NAME}-asked"]
    (rule,) = role["rules"]
    assert rule == {
        "apiGroups": [""], "resources": ["services/proxy"], "resourceNames": [f"{NAME}:http"], "verbs": ["get"],
    }  # fmt: skip
    assert "http" in [port["name"] for port in objects["Service", NAME]["spec"]["ports"]]
    assert [one["name"] for one in binding["subjects"]] == ["system:authenticated"]
    narrowed = render("dashboard.askedBy={ml,ops}")["RoleBinding", f"{NAME}-asked"]
    assert [(one["kind"], one["name"]) for one in narrowed["subjects"]] == [("Group", "ml"), ("Group", "ops")]
    closed = render(arguments=("--set-json=dashboard.askedBy=[]",))
    assert ("Role", f"{NAME}-asked") not in closed
    assert ("RoleBinding", f"{NAME}-asked") not in closed
