"""The values: each is in the schema and in the README, and a wrong one is refused by its name."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.timeout(1800)


def _leaves(prefix: str, value: Any) -> Iterator[str]:
    """Dotted paths of what a user would set; amounts, selectors and the like count as one value."""
    if isinstance(value, dict) and value and not prefix.endswith(("requests", "limits", "Policy.spec")):
        for name, inner in value.items():
            yield from _leaves(f"{prefix}.{name}" if prefix else name, inner)
    else:
        yield prefix


def _declared(schema: dict[str, Any], root: dict[str, Any], path: list[str]) -> bool:
    schema = root["definitions"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
    if not path:
        return "description" in schema
    return path[0] in schema.get("properties", {}) and _declared(schema["properties"][path[0]], root, path[1:])


def test_every_value_is_in_the_schema_with_a_description(chart: Path) -> None:
    schema = json.loads((chart / "values.schema.json").read_text())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    missing = [path for path in _leaves("", values) if not _declared(schema, schema, path.split("."))]
    assert missing == []


def test_every_value_is_explained_in_the_readme(chart: Path) -> None:
    readme = (chart / "README.md").read_text()
    values = yaml.safe_load((chart / "values.yaml").read_text())
    missing = [
        path
        for path in _leaves("", values)
        if f"`{path}`" not in readme and f"`*.{path.split('.', 1)[-1]}`" not in readme
    ]
    assert missing == []


def test_the_readme_explains_no_value_that_is_not_there(chart: Path) -> None:
    values = yaml.safe_load((chart / "values.yaml").read_text())
    known = set(_leaves("", values))
    known |= {f"*.{path.split('.', 1)[1]}" for path in known if "." in path}
    rows = [line for line in (chart / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.split("`")[1] not in known] == []


def test_every_object_in_the_schema_is_closed_but_global_which_is_shared_with_other_charts(chart: Path) -> None:
    schema = json.loads((chart / "values.schema.json").read_text())

    def closed(path: str, node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "properties" in node and node.get("additionalProperties") is not False:
                yield path
            for name, inner in node.items():
                yield from closed(f"{path}.{name}", inner)

    assert list(closed("", schema)) == [".properties.global"]


@pytest.mark.parametrize(
    ("value", "named", "words"),
    [
        ("extender.replicas=0", "/extender/replicas", "minimum"),
        ("extender.replicas=two", "/extender/replicas", "want integer"),
        ("extender.replicas=-1", "/extender/replicas", "minimum"),
        ("scheduler.replicas=-1", "/scheduler/replicas", "minimum"),
        ("extender.replicas=null", "/extender", "missing property 'replicas'"),
        ("tls=null", "", "missing property 'tls'"),
        ("podLabels.team=a b", "/podLabels/team", "does not match"),
        ("priorityClassName=High", "/priorityClassName", "does not match"),
        ("tls.extenderSecret=My_Secret", "/tls/extenderSecret", "does not match"),
        ("imagePullSecrets[0].name=x", "/imagePullSecrets/0", "want string"),
        ("scheduler.image=some image", "/scheduler/image", "does not match"),
        ("extender.tolerations[0].value=x", "/extender/tolerations/0", "missing property 'key'"),
        ("networkPolicy.metricsFrom[0].ipBlock.cidr=10.0.0.0", "/networkPolicy/metricsFrom/0/ipBlock/cidr", "does not"),
        ("networkPolicy.apiFrom[0].podSelector.app=x", "/networkPolicy/apiFrom/0/podSelector", "'app' not allowed"),
        ("extender.replica=2", "/extender", "'replica' not allowed"),
        ("operator.replicas=2", "/operator", "'replicas' not allowed"),
        ("replicas=2", "", "'replicas' not allowed"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy", "one of 'Always', 'IfNotPresent', 'Never'"),
        ("image.registry=https://registry.example.com", "/image/registry", "does not match"),
        ("image.registry=registry.example.com/", "/image/registry", "does not match"),
        ("global.imageRegistry=https://mirror.example.com", "/global/imageRegistry", "does not match"),
        ("image.tag=a b", "/image/tag", "does not match"),
        ("operator.logLevel=loud", "/operator/logLevel", "one of 'DEBUG'"),
        ("scheduler.clientQPS=0", "/scheduler/clientQPS", "minimum"),
        ("operator.resources.request.cpu=1", "/operator/resources", "'request' not allowed"),
        ("extender.tolerations[0].effect=Never", "/extender/tolerations/0/effect", "one of"),
        ("tls.validityDays=3650", "/tls", "'validityDays' not allowed"),
        ("tls.certificateDays=0", "/tls/certificateDays", "minimum"),
        ("tls.certManager.issuer=me", "/tls/certManager", "'issuer' not allowed"),
        ("tls.schedulerNames={a b}", "/tls/schedulerNames/0", "does not match"),
        ("networkPolicy.enabled=on", "/networkPolicy/enabled", "want boolean"),
        ("networkPolicy.apiServerPorts={0}", "/networkPolicy/apiServerPorts/0", "minimum"),
        ("networkPolicy.apiServerPorts=null", "/networkPolicy", "missing property 'apiServerPorts'"),
        ("networkPolicy.metricsFrom[0].app=x", "/networkPolicy/metricsFrom/0", "'app' not allowed"),
        ("networkPolicy.workerNamespaces={Team}", "/networkPolicy/workerNamespaces/0", "does not match"),
        ("tracing.endpoint=collector:4317", "/tracing/endpoint", "does not match"),
        ("tracing.endpoint=http://collector:4318/v1/traces", "/tracing/endpoint", "does not match"),
        ("tracing.share=2", "/tracing/share", "maximum"),
        ("rbac.aggregateToUserRoles=maybe", "/rbac/aggregateToUserRoles", "want boolean"),
        ("schedulingPolicy.spec=las", "/schedulingPolicy/spec", "want object"),
        ("schedulingPolicy.spec.policies=las", "/schedulingPolicy/spec", "'policies' not allowed"),
        ("schedulingPolicy.spec.policy=best", "/schedulingPolicy/spec/policy", "one of"),
        ("workerPriority=2000000000", "/workerPriority", "maximum"),
        ("metrics.serviceMonitor.interval=often", "/metrics/serviceMonitor/interval", "does not match"),
        ("metrics.serviceMonitor.interval=0s", "/metrics/serviceMonitor/interval", "does not match"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(
    helm: Callable[..., Any], chart: Path, value: str, named: str, words: str
) -> None:
    result = helm("template", "x", str(chart), f"--set={value}")
    assert result.returncode != 0
    assert f"at '{named}'" in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("certificates.schedule=daily",), 'certificates.schedule: "daily" is not understood'),
        (("certificates.schedule=9 99 * * *",), "hour (0-23)"),
        (("certificates.schedule=0 0 1 1 *",), "looks less than once a week"),
        (("certificates.schedule=@weekly", "tls.certificateDays=20"), "tls.certificateDays: at least 21"),
        (("scheduler.extenderTimeout=soon",), '"soon" is not between 500ms and 60s'),
        (("scheduler.extenderTimeout=0s",), '"0s" is not between 500ms and 60s'),
        (("operator.resources.requests.cpu=lots",), "operator.resources.requests.cpu: lots is no number of CPUs"),
        (("scheduler.resources.limits.cpu=0",), "scheduler.resources.limits.cpu: 0 is no number of CPUs"),
        (("extender.resources.limits.memory=512m",), "512m is no number of bytes; write 256Mi or 1Gi"),
        (("extender.resources.limits.memory=512",), "extender.resources.limits.memory: 512 is less than 16Mi"),
        (("operator.resources.limits.memory=64Mi",), "the request of 128Mi memory is more than the limit of 64Mi"),
        (("certificates.resources.limits.cpu=0.02",), "the request of 50m cpu is more than the limit of 0.02"),
        (("podLabels.app\\.kubernetes\\.io/component=x",), "app.kubernetes.io/component is a label of the chart's own"),
    ],
)
def test_a_value_with_which_nothing_would_start_is_refused_in_words(
    helm: Callable[..., Any], chart: Path, values: tuple[str, ...], words: str
) -> None:
    result = helm("template", "x", str(chart), *(f"--set={value}" for value in values))
    assert result.returncode != 0
    assert words in result.stderr


def test_values_as_people_write_them_are_taken(render: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        """
        certificates: {schedule: "*/30 2-4 * * MON-FRI,0"}
        scheduler: {extenderTimeout: 1500ms, resources: {limits: {cpu: 0.5, memory: 536870912}}}
        operator: {resources: {limits: {cpu: 1, memory: 0.5Gi}}, tolerations: [{operator: Exists}]}
        extender: {tolerations: [{key: gpu, value: "yes", effect: NoExecute, tolerationSeconds: 60}]}
        networkPolicy: {metricsFrom: [{ipBlock: {cidr: "fd00::/8"}}, {namespaceSelector: {matchLabels: {a: b}}}]}
        """
    )
    objects = render(arguments=(f"--values={file}",))
    pods = {name: item["spec"]["template"]["spec"] for (kind, name), item in objects.items() if kind == "Deployment"}
    limits = {name: pod["containers"][0]["resources"]["limits"] for name, pod in pods.items()}
    assert limits["kube-synergy-scheduler"] == {"cpu": 0.5, "memory": 536870912}
    assert limits["kube-synergy-operator"] == {"cpu": 1, "memory": "0.5Gi"}
    assert objects["CronJob", "kube-synergy-certificates"]["spec"]["schedule"] == "*/30 2-4 * * MON-FRI,0"


def test_no_value_names_a_registry(chart: Path) -> None:
    assert yaml.safe_load((chart / "values.yaml").read_text())["image"]["registry"] == ""
