"""What the checks of an installation find, and what they ask for."""

from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import node_object
from synergy_api.cluster.pools import node_capacities
from synergy_api.names import ANNOTATION_VERSION, PRODUCT_VERSION
from synergy_view.doctor import COMPONENTS, DASHBOARD, DEFINITIONS, Check, Facts, diagnose

NODES = [node_object("n1"), node_object("n2")]
IN_FORCE = {"policy": "2d-las", "mechanism": "tune", "roundSeconds": 300}


def deployment(name: str, ready: int = 1, wanted: int = 1) -> dict[str, Any]:
    status = {"readyReplicas": ready} if ready else {}
    return {"metadata": {"name": name, "namespace": "kube-synergy"}, "spec": {"replicas": wanted}, "status": status}


def definition(version: str = PRODUCT_VERSION) -> dict[str, Any]:
    return {"metadata": {"annotations": {ANNOTATION_VERSION: version}}}


def dashboard(
    *, ready: int = 1, volume: dict[str, Any] | None = None, database: dict[str, Any] | None = None
) -> dict[str, Any]:
    item = deployment(DASHBOARD, ready)
    environment = {"name": "SYNERGY_DASHBOARD_DATABASE", **(database or {"value": "sqlite:////history.db"})}
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "history", **(volume or {"emptyDir": {}})}]
    pod = {"containers": [{"name": "dashboard", "env": [environment]}], "volumes": volumes}
    item["spec"]["template"] = {"spec": pod}
    return item


CLAIM = {"persistentVolumeClaim": {"claimName": "mine"}}
WELL = Facts(
    server_version="v1.36.3",
    clock_skew_s=0.2,
    definitions={name: definition() for name in DEFINITIONS},
    deployments=[deployment(name) for name in COMPONENTS],
    certificate_left_s=80 * 86_400.0,
    nodes=NODES,
    capacities=node_capacities(NODES, []),
    pools=[],
    policies=[{"metadata": {"name": "default"}, "status": {"inForce": IN_FORCE}}],
    permissions={"get trainingjobs": True},
)


def found(what: str, **changed: Any) -> Check:
    return next(check for check in diagnose(replace(WELL, **changed)) if check.what == what)


def test_all_is_well() -> None:
    assert {check.level for check in diagnose(WELL)} == {"ok"}


def test_what_the_user_may_not_read_is_unknown_and_no_failure() -> None:
    facts = Facts(server_version="v1.36.3")
    assert {check.level for check in diagnose(facts)} == {"ok", "unknown"}


@pytest.mark.parametrize(
    ("what", "level", "words", "changed"),
    [
        ("Kubernetes", "failed", "too old", {"server_version": "v1.30.1"}),
        ("clock", "warning", "+90 s", {"clock_skew_s": 90.0}),
        ("resource definitions", "failed", "missing: tenants",
         {"definitions": {name: definition() for name in DEFINITIONS if name != "tenants"}}),
        ("resource definitions", "warning", "of version 0.1.0",
         {"definitions": {name: definition("0.1.0") for name in DEFINITIONS}}),
        ("kube-synergy-extender", "failed", "no such Deployment", {"deployments": []}),
        ("kube-synergy-extender", "failed", "0 of 2", {"deployments": [deployment("kube-synergy-extender", 0, 2)]}),
        ("kube-synergy-extender", "warning", "1 of 2", {"deployments": [deployment("kube-synergy-extender", 1, 2)]}),
        ("certificate of the extender", "failed", "has ended", {"certificate_left_s": -1.0}),
        ("certificate of the extender", "warning", "ends in 2d", {"certificate_left_s": 2 * 86_400.0}),
        ("GPUs", "failed", "none of the 2 nodes", {"capacities": []}),
        ("SchedulingPolicy", "warning", "there is none called default", {"policies": []}),
        ("SchedulingPolicy", "warning", "no extender", {"policies": [{"metadata": {"name": "default"}}]}),
        ("your rights", "warning", "you may not: get trainingjobs", {"permissions": {"get trainingjobs": False}}),
    ],
)  # fmt: skip
def test_trouble_is_named_with_what_to_do(what: str, level: str, words: str, changed: dict[str, Any]) -> None:
    check = found(what, **changed)
    assert (check.level, words in check.found) == (level, True), check
    assert check.todo


def test_an_invalid_policy_has_the_extenders_words() -> None:
    condition = {"type": "Valid", "status": "False", "reason": "InvalidPolicy", "message": "spec.policy: what"}
    check = found(
        "SchedulingPolicy", policies=[{"metadata": {"name": "default"}, "status": {"conditions": [condition]}}]
    )
    assert (check.level, check.found) == ("failed", "spec.policy: what")


def test_a_pool_that_does_not_parse_is_named() -> None:
    check = found("GPUPools", pools=[{"metadata": {"name": "p"}, "spec": {"gpuType": ""}}])
    assert (check.level, check.found.startswith("p: ")) == ("failed", True)


@pytest.mark.parametrize(
    ("item", "level", "words", "todo"),
    [
        (dashboard(), "warning", "in its pod, and lost", "dashboard.persistence.enabled"),
        (dashboard(volume=CLAIM), "ok", "on the volume of mine", ""),
        (dashboard(database={"valueFrom": {"secretKeyRef": {}}}), "ok", "in a database", ""),
        (dashboard(volume=CLAIM, ready=0), "warning", "not ready", "pvc mine"),
        (dashboard(ready=0), "warning", "not ready", "kubectl describe -n kube-synergy pods"),
    ],
)
def test_where_the_history_is(item: dict[str, Any], level: str, words: str, todo: str) -> None:
    check = found("dashboard", deployments=[*(WELL.deployments or ()), item])
    assert (check.level, words in check.found, todo in check.todo) == (level, True, True), check
    assert bool(check.todo) == (level != "ok")
    assert ("pvc" in check.todo) == ("pvc" in todo)


def test_shared_gpus_without_mps_are_warned_of() -> None:
    node = node_object("n1", gpus=4)
    node["metadata"]["labels"] |= {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing",
                                   "nvidia.com/gpu.count": "1"}  # fmt: skip
    check = found("MPS", capacities=node_capacities([node], []))
    assert (check.level, "n1" in check.found) == ("warning", True)
    node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"] = "mps"
    assert found("MPS", capacities=node_capacities([node], [])).level == "ok"


def test_a_node_where_mps_is_half_configured_is_named_with_what_to_do() -> None:
    node = node_object("n1")
    node["metadata"]["labels"]["pool"] = "a"
    spec = {"gpuType": "V100", "nodeSelector": {"pool": "a"}, "sharing": {"mode": "MPS", "replicas": 2}}
    check = found("MPS", nodes=[node], pools=[{"metadata": {"name": "a"}, "spec": spec}])
    assert check.level == "warning"
    assert "GPUPools share GPUs, but n1: each has no label nvidia.com/device-plugin.config" in check.found
    assert "devicePlugin.configs of the chart" in check.todo
