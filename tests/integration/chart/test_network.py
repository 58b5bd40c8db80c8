"""Who may talk to whom under the chart's NetworkPolicies, read as the Kubernetes API defines them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

Rendered = dict[tuple[str, str], dict[str, Any]]

pytestmark = pytest.mark.timeout(1800)

HERE = "somewhere"
JOB = "kube-synergy.dev/job"


@dataclass(frozen=True)
class Pod:
    """One end of a connection; without labels and namespace it is outside the cluster."""

    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)


OUTSIDE = Pod()
PROMETHEUS = Pod("monitoring", {"app": "prometheus"})
STRANGER = Pod(HERE, {"app": "something"})


def component(objects: Rendered, name: str) -> Pod:
    kind = "Job" if name == "certificates-install" else "Deployment"
    return Pod(HERE, objects[kind, f"kube-synergy-{name}"]["spec"]["template"]["metadata"]["labels"])


def worker(namespace: str) -> Pod:
    return Pod(namespace, {JOB: "j"})


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a label selector of these tests' kinds finds the labels."""
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "Exists"
        if expression["key"] not in labels:
            return False
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def rule_allows(rule: dict[str, Any], peers: str, other: Pod, port: int, home: str) -> bool:
    ports = [entry["port"] for entry in rule.get("ports", ())]
    if ports and port not in ports:
        return False
    if peers not in rule:
        return True
    return any(is_peer(peer, other, home) for peer in rule[peers])


def is_peer(peer: dict[str, Any], other: Pod, home: str) -> bool:
    if not other.namespace:
        return False
    if "namespaceSelector" in peer:
        assert peer["namespaceSelector"] == {}, "these tests know no labels of namespaces"
    elif other.namespace != home:
        return False
    return selects(peer.get("podSelector", {}), other.labels)


def allowed(objects: Rendered, source: Pod, target: Pod, port: int) -> bool:
    """Whether the policies let `source` connect to `target`: both ends must agree."""

    def end(pod: Pod, kind: str, rules: str, peers: str, other: Pod) -> bool:
        applied = [
            item
            for item in objects.values()
            if item["kind"] == "NetworkPolicy"
            and item["metadata"]["namespace"] == pod.namespace
            and kind in item["spec"]["policyTypes"]
            and selects(item["spec"]["podSelector"], pod.labels)
        ]
        return not applied or any(
            rule_allows(rule, peers, other, port, pod.namespace)
            for policy in applied
            for rule in policy["spec"].get(rules, ())
        )

    return end(source, "Egress", "egress", "to", target) and end(target, "Ingress", "ingress", "from", source)


def reached_by(objects: Rendered, target: Pod, port: int, sources: Iterable[Pod]) -> list[Pod]:
    return [source for source in sources if allowed(objects, source, target, port)]


def test_the_scheduler_alone_reaches_the_scheduler_verbs(objects: Rendered) -> None:
    scheduler, operator = component(objects, "scheduler"), component(objects, "operator")
    everyone = [scheduler, operator, worker("team"), STRANGER, PROMETHEUS, OUTSIDE]
    assert reached_by(objects, component(objects, "extender"), 9443, everyone) == [scheduler]


def test_workers_of_all_namespaces_reach_the_lease_endpoint(objects: Rendered) -> None:
    extender = component(objects, "extender")
    everyone = [component(objects, "scheduler"), worker("team"), worker(HERE), STRANGER, PROMETHEUS, OUTSIDE]
    assert reached_by(objects, extender, 9444, everyone) == [worker("team"), worker(HERE)]


def test_others_reach_the_api_on_request(render: Callable[..., Rendered]) -> None:
    given = render("networkPolicy.apiFrom[0].podSelector.matchLabels.app=something")
    everyone = [worker("team"), STRANGER, PROMETHEUS]
    assert reached_by(given, component(given, "extender"), 9444, everyone) == [worker("team"), STRANGER]


@pytest.mark.parametrize(("name", "port"), [("extender", 8080), ("operator", 8081), ("scheduler", 10259)])
def test_metrics_are_for_the_cluster_or_for_those_that_are_named(
    render: Callable[..., Rendered], objects: Rendered, name: str, port: int
) -> None:
    everyone = [PROMETHEUS, STRANGER, OUTSIDE]
    assert reached_by(objects, component(objects, name), port, everyone) == [PROMETHEUS, STRANGER]
    named = render("networkPolicy.metricsFrom[0].podSelector.matchLabels.app=something")
    assert reached_by(named, component(named, name), port, everyone) == [STRANGER]


@pytest.mark.parametrize("name", ["operator", "certificates-install"])
def test_nobody_reaches_the_operator_s_probe_or_the_certificate_job(objects: Rendered, name: str) -> None:
    everyone = [component(objects, "extender"), worker("team"), PROMETHEUS, OUTSIDE]
    assert reached_by(objects, component(objects, name), 8080, everyone) == []


@pytest.mark.parametrize("name", ["operator", "extender", "scheduler", "certificates-install"])
def test_components_reach_the_api_server_and_the_names_and_nothing_outside(objects: Rendered, name: str) -> None:
    pod = component(objects, name)
    assert [port for port in (53, 443, 6443, 80, 8443, 9443) if allowed(objects, pod, OUTSIDE, port)] == [53, 443, 6443]


def test_the_ports_of_the_api_server_can_be_told(render: Callable[..., Rendered]) -> None:
    given = render("networkPolicy.apiServerPorts={16443}")
    pod = component(given, "operator")
    assert (allowed(given, pod, OUTSIDE, 16443), allowed(given, pod, OUTSIDE, 443)) == (True, False)


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [
        ("http://collector.monitoring:4318", 4318),
        ("https://traces.example.com", 443),
        ("http://traces.example.com", 80),
    ],
)
def test_operator_and_extender_reach_the_receiver_of_traces(
    render: Callable[..., Rendered], endpoint: str, port: int
) -> None:
    values = (f"tracing.endpoint={endpoint}", "networkPolicy.apiServerPorts={6443}")
    given = render(*values, arguments=("--set-json=tracing.share=0.1",))
    for name in ("operator", "extender"):
        pod = component(given, name)
        assert [one for one in (80, 443, 4318) if allowed(given, pod, OUTSIDE, one)] == [port]
        (container,) = given["Deployment", f"kube-synergy-{name}"]["spec"]["template"]["spec"]["containers"]
        told = {item["name"]: item.get("value") for item in container["env"]}
        assert told["SYNERGY_TRACING_ENDPOINT"] == endpoint
        assert (told["OTEL_TRACES_SAMPLER"], told["OTEL_TRACES_SAMPLER_ARG"]) == ("parentbased_traceidratio", "0.1")
    assert not allowed(given, component(given, "scheduler"), OUTSIDE, port)


def test_every_port_that_a_policy_opens_is_one_of_the_container(objects: Rendered) -> None:
    for name in ("operator", "extender", "scheduler"):
        (container,) = objects["Deployment", f"kube-synergy-{name}"]["spec"]["template"]["spec"]["containers"]
        ports = {port["containerPort"] for port in container["ports"]}
        rules = objects["NetworkPolicy", f"kube-synergy-{name}"]["spec"].get("ingress", [])
        assert {port["port"] for rule in rules for port in rule["ports"]} <= ports


def test_a_gang_talks_freely_within_its_namespace_and_with_nobody_else(render: Callable[..., Rendered]) -> None:
    given = render("networkPolicy.workerNamespaces={team,other}")
    for port in (29499, 29500, 40123):
        assert allowed(given, worker("team"), worker("team"), port)
        assert not allowed(given, worker("other"), worker("team"), port)
        assert not allowed(given, Pod("team", {"app": "web"}), worker("team"), port)
        assert allowed(given, worker("team"), worker("third"), port)
    assert allowed(given, worker("team"), component(given, "extender"), 9444)


def test_network_policies_can_be_left_out(render: Callable[..., Rendered]) -> None:
    without = render("networkPolicy.enabled=false", "networkPolicy.workerNamespaces={team}")
    assert not [kind for kind, _ in without if kind == "NetworkPolicy"]
