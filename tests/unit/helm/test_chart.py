"""What the chart makes, and that its parts fit each other and the rest of the project."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from pydantic import TypeAdapter

from synergy_api.names import SCHEDULER_NAME
from synergy_api.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec

Rendered = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Rendered]

pytestmark = pytest.mark.timeout(1800)

COMPONENTS = ("operator", "extender", "scheduler")
NAMESPACE = "somewhere"


def _deployment(objects: Rendered, component: str) -> dict[str, Any]:
    return objects["Deployment", f"kube-synergy-{component}"]


def _pod(objects: Rendered, component: str) -> dict[str, Any]:
    pod: dict[str, Any] = _deployment(objects, component)["spec"]["template"]
    return pod


def _container(objects: Rendered, component: str) -> dict[str, Any]:
    (container,) = _pod(objects, component)["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def _config(objects: Rendered) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(objects["ConfigMap", "kube-synergy-scheduler"]["data"]["config.yaml"])
    return config


def _certificate(objects: Rendered, secret: str, key: str = "tls.crt") -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(objects["Secret", secret]["data"][key]))


def test_the_chart_passes_lint(helm: Callable[..., Any], chart: Path) -> None:
    for values in ((), *(("--values", str(file)) for file in chart.glob("values-*.yaml"))):
        result = helm("lint", str(chart), "--strict", *values)
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_charts_version_is_the_projects(chart: Path) -> None:
    project = (chart.parents[1] / "pyproject.toml").read_text()
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert f'version = "{about["version"]}"' in project
    assert about["appVersion"] == about["version"]


def test_the_scheduler_asks_the_extender_at_its_service_by_its_four_verbs(objects: Rendered) -> None:
    (extender,) = _config(objects)["extenders"]
    service = objects["Service", "kube-synergy-extender"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert extender["urlPrefix"] == f"https://kube-synergy-extender.{NAMESPACE}.svc:{ports['scheduler']}"
    verbs = {verb: extender[f"{verb}Verb"] for verb in ("filter", "prioritize", "bind", "preempt")}
    assert verbs == {verb: verb for verb in verbs}
    assert extender["nodeCacheCapable"] is True
    assert extender["ignorable"] is False
    assert extender["enableHTTPS"] is True
    assert extender["managedResources"] == [
        {"name": "nvidia.com/gpu", "ignoredByScheduler": False},
        {"name": "nvidia.com/gpu.shared", "ignoredByScheduler": False},
    ]


def test_the_scheduler_is_a_second_one_with_a_lease_and_a_profile_of_its_own(objects: Rendered) -> None:
    config = _config(objects)
    assert [profile["schedulerName"] for profile in config["profiles"]] == [SCHEDULER_NAME]
    election = config["leaderElection"]
    assert (election["leaderElect"], election["resourceName"]) == (True, "kube-synergy-scheduler")
    assert election["resourceNamespace"] == NAMESPACE
    assert config["percentageOfNodesToScore"] == 100


def test_the_files_the_scheduler_reads_are_mounted(objects: Rendered) -> None:
    container = _container(objects, "scheduler")
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"--config={mounts['config']}/config.yaml" in container["args"]
    tls = _config(objects)["extenders"][0]["tlsConfig"]
    secret = objects["Secret", "kube-synergy-scheduler-tls"]["data"]
    assert {Path(path).name for path in tls.values()} == set(secret)
    assert {str(Path(path).parent) for path in tls.values()} == {mounts["tls"]}


def test_a_change_of_the_schedulers_configuration_restarts_it(render: Render, objects: Rendered) -> None:
    def checksum(rendered: Rendered) -> str:
        return str(_pod(rendered, "scheduler")["metadata"]["annotations"]["checksum/config"])

    assert checksum(render("scheduler.extenderTimeout=9s")) != checksum(objects)
    assert checksum(render("scheduler.replicas=2")) == checksum(objects)


def test_the_services_ports_are_those_of_the_container(objects: Rendered) -> None:
    container = {port["name"]: port["containerPort"] for port in _container(objects, "extender")["ports"]}
    service = objects["Service", "kube-synergy-extender"]["spec"]
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == container
    assert container == {"scheduler": 9443, "api": 9444, "metrics": 8080}


@pytest.mark.parametrize("component", COMPONENTS)
def test_selectors_find_the_pods_of_their_component_only(objects: Rendered, component: str) -> None:
    selector = _deployment(objects, component)["spec"]["selector"]["matchLabels"]
    for other in COMPONENTS:
        labels = _pod(objects, other)["metadata"]["labels"]
        assert (selector.items() <= labels.items()) == (other == component)
    if component == "extender":
        assert objects["Service", "kube-synergy-extender"]["spec"]["selector"] == selector
        assert objects["PodDisruptionBudget", "kube-synergy-extender"]["spec"]["selector"]["matchLabels"] == selector


def test_the_operator_reaches_the_extender_and_trusts_its_authority(objects: Rendered) -> None:
    container = _container(objects, "operator")
    env = {item["name"]: item["value"] for item in container["env"]}
    assert env["SYNERGY_EXTENDER_URL"] == f"https://kube-synergy-extender.{NAMESPACE}.svc:9444"
    assert env["SYNERGY_PROFILER_IMAGE"] == container["image"].replace("-operator:", "-profiler:")
    assert ("PriorityClass", env["SYNERGY_PRIORITY_CLASS"]) in objects
    (mount,) = container["volumeMounts"]
    assert Path(env["SYNERGY_CA_FILE"]).parent == Path(mount["mountPath"])


def test_the_operator_sees_the_authority_and_no_key(objects: Rendered) -> None:
    (volume,) = _pod(objects, "operator")["spec"]["volumes"]
    assert [item["key"] for item in volume["secret"]["items"]] == ["ca.crt"]


def test_there_is_one_operator_and_never_two(objects: Rendered) -> None:
    spec = _deployment(objects, "operator")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_workers_never_preempt_others(objects: Rendered) -> None:
    priority = objects["PriorityClass", "kube-synergy-worker"]
    assert (priority["preemptionPolicy"], priority["globalDefault"]) == ("Never", False)


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_pod_keeps_to_the_restricted_security_standard(objects: Rendered, component: str) -> None:
    pod = _pod(objects, component)["spec"]
    security = _container(objects, component)["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= {"secret", "configMap"}


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_container_has_probes_on_its_own_ports_and_resources(objects: Rendered, component: str) -> None:
    container = _container(objects, component)
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])


def test_the_server_certificate_covers_the_services_names(objects: Rendered) -> None:
    certificate = _certificate(objects, "kube-synergy-extender-tls")
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    host = f"kube-synergy-extender.{NAMESPACE}.svc"
    wanted = {host, f"{host}.cluster.local", f"kube-synergy-extender.{NAMESPACE}", "kube-synergy-extender"}
    assert set(names.get_values_for_type(x509.DNSName)) == wanted


@pytest.mark.parametrize("component", ["extender", "scheduler"])
def test_both_certificates_are_of_one_authority_and_have_their_keys(objects: Rendered, component: str) -> None:
    secret = f"kube-synergy-{component}-tls"
    authority = _certificate(objects, "kube-synergy-extender-tls", "ca.crt")
    certificate = _certificate(objects, secret)
    certificate.verify_directly_issued_by(authority)
    assert _certificate(objects, secret, "ca.crt") == authority
    key = load_pem_private_key(base64.b64decode(objects["Secret", secret]["data"]["tls.key"]), None)
    assert key.public_key() == certificate.public_key()
    uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    wanted = ExtendedKeyUsageOID.SERVER_AUTH if component == "extender" else ExtendedKeyUsageOID.CLIENT_AUTH
    assert wanted in uses


def test_the_authoritys_key_is_kept_nowhere(objects: Rendered) -> None:
    for kind, name in objects:
        if kind == "Secret":
            assert set(objects[kind, name]["data"]) == {"tls.crt", "tls.key", "ca.crt"}


def test_given_secrets_are_used_and_none_is_made(render: Render) -> None:
    given = render("tls.extenderSecret=mine-extender", "tls.schedulerSecret=mine-scheduler")
    assert not [name for kind, name in given if kind == "Secret"]

    def secrets(component: str) -> list[str]:
        volumes = _pod(given, component)["spec"]["volumes"]
        return [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]

    assert secrets("extender") == secrets("operator") == ["mine-extender"]
    assert secrets("scheduler") == ["mine-scheduler"]


def test_one_given_secret_alone_is_refused(helm: Callable[..., Any], chart: Path) -> None:
    result = helm("template", "x", str(chart), "--set=tls.extenderSecret=mine")
    assert result.returncode != 0
    assert "tls.extenderSecret and tls.schedulerSecret: give both, or neither" in result.stderr


def test_the_default_policy_is_made_at_the_first_install_only(objects: Rendered, chart: Path) -> None:
    policy = objects["SchedulingPolicy", DEFAULT_POLICY_NAME]
    annotations = policy["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-install"
    assert annotations["helm.sh/resource-policy"] == "keep"
    assert TypeAdapter(SchedulingPolicySpec).validate_python(policy["spec"]).policy == "las"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert policy["spec"] == values["schedulingPolicy"]["spec"]


@pytest.mark.parametrize(
    ("value", "absent"),
    [
        ("schedulingPolicy.create=false", ("SchedulingPolicy", "default")),
        ("extender.replicas=1", ("PodDisruptionBudget", "kube-synergy-extender")),
        ("rbac.aggregateToUserRoles=false", ("ClusterRole", "kube-synergy-edit")),
    ],
)
def test_what_a_value_turns_off_is_gone(render: Render, objects: Rendered, value: str, absent: tuple[str, str]) -> None:
    assert absent in objects
    assert absent not in render(value)


def test_the_service_monitor_is_made_on_request_and_finds_the_metrics_port(render: Render, objects: Rendered) -> None:
    assert not [kind for kind, _ in objects if kind == "ServiceMonitor"]
    rendered = render("metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.labels.release=prometheus")
    monitor = rendered["ServiceMonitor", "kube-synergy-extender"]
    service = rendered["Service", "kube-synergy-extender"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert {end["port"] for end in monitor["spec"]["endpoints"]} <= {port["name"] for port in service["spec"]["ports"]}


def test_images_are_bare_names_until_a_registry_is_given(render: Render, objects: Rendered) -> None:
    assert _container(objects, "extender")["image"] == "kube-synergy-extender:0.1.0"
    given = render("image.registry=registry.example.com/team", "image.tag=v9")
    for component in COMPONENTS:
        assert _container(given, component)["image"] == f"registry.example.com/team/kube-synergy-{component}:v9"
    own = render("image.registry=registry.example.com", "scheduler.image=registry.example.com/kube-scheduler:v1.35.0")
    assert _container(own, "scheduler")["image"] == "registry.example.com/kube-scheduler:v1.35.0"


def test_pod_settings_reach_every_component(render: Render) -> None:
    given = render(
        "podAnnotations.note=seen",
        "podLabels.team=ml",
        "priorityClassName=important",
        "imagePullSecrets[0]=puller",
        *(f"{component}.nodeSelector.zone=a" for component in COMPONENTS),
        *(f"{component}.tolerations[0].operator=Exists" for component in COMPONENTS),
    )
    for component in COMPONENTS:
        pod = _pod(given, component)
        assert pod["metadata"]["annotations"]["note"] == "seen"
        assert pod["metadata"]["labels"]["team"] == "ml"
        assert pod["spec"]["priorityClassName"] == "important"
        assert pod["spec"]["imagePullSecrets"] == [{"name": "puller"}]
        assert pod["spec"]["nodeSelector"] == {"zone": "a"}
        assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_replicas_prefer_different_nodes_unless_told_otherwise(render: Render, objects: Rendered) -> None:
    assert "podAntiAffinity" in _pod(objects, "extender")["spec"]["affinity"]
    own = render("extender.affinity.nodeAffinity.x=y", arguments=())
    assert _pod(own, "extender")["spec"]["affinity"] == {"nodeAffinity": {"x": "y"}}


def test_names_do_not_depend_on_the_releases_name(render: Render, objects: Rendered) -> None:
    assert render(release="other").keys() == objects.keys()


def test_all_namespaced_objects_are_in_the_releases_namespace(objects: Rendered) -> None:
    cluster = {"ClusterRole", "ClusterRoleBinding", "PriorityClass", "SchedulingPolicy"}
    for (kind, _), item in objects.items():
        expected = None if kind in cluster else NAMESPACE
        assert item["metadata"].get("namespace") == expected
