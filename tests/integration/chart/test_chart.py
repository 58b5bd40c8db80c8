"""What the chart makes, and that its parts fit each other and the rest of the project."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from support.on_cluster.prometheus import DASHBOARDS, rules
from synergy_api.generation.crd import KINDS
from synergy_api.names import PRODUCT_VERSION, SCHEDULER_NAME
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_operator.certificates.job import AUTHORITY, EXTENDER, SCHEDULER, SCHEDULER_DEPLOYMENT, read_settings
from synergy_operator.definitions import job as definitions

Rendered = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Rendered]

pytestmark = pytest.mark.timeout(1800)

COMPONENTS = ("operator", "extender", "scheduler", "dashboard")
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


def test_the_chart_passes_lint(helm: Callable[..., Any], chart: Path) -> None:
    for values in ((), *(("--values", str(file)) for file in chart.glob("values-*.yaml"))):
        result = helm("lint", str(chart), "--strict", *values)
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_charts_version_is_the_projects(chart: Path) -> None:
    project = (chart.parents[1] / "pyproject.toml").read_text()
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert f'version = "{about["version"]}"' in project
    assert about["version"] == PRODUCT_VERSION
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
    assert "managedResources" not in extender, "it is asked about pods whose GPUs have any name"


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
    assert {Path(path).name for path in tls.values()} == {"tls.crt", "tls.key", "ca.crt"}
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
    assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= {
        "secret",
        "configMap",
        "emptyDir",
        "persistentVolumeClaim",
    }


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_container_has_probes_on_its_own_ports_and_resources(objects: Rendered, component: str) -> None:
    container = _container(objects, component)
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])


def _certificate_pods(objects: Rendered) -> list[dict[str, Any]]:
    job = objects["Job", "kube-synergy-certificates-install"]["spec"]
    cron = objects["CronJob", "kube-synergy-certificates"]["spec"]["jobTemplate"]["spec"]
    return [job["template"], cron["template"]]


def test_certificates_are_made_before_anything_else_and_renewed_by_the_same_program(objects: Rendered) -> None:
    annotations = objects["Job", "kube-synergy-certificates-install"]["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
    assert not [name for kind, name in objects if kind == "Secret"]
    first, later = _certificate_pods(objects)
    assert first["spec"].pop("serviceAccountName") == "kube-synergy-certificates-install"
    assert later["spec"].pop("serviceAccountName") == "kube-synergy-certificates"
    assert first == later


def test_what_the_first_job_needs_is_made_before_it_and_goes_with_it(objects: Rendered) -> None:
    job = objects["Job", "kube-synergy-certificates-install"]["metadata"]["annotations"]
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        annotations = objects[kind, "kube-synergy-certificates-install"]["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == job["helm.sh/hook"]
        assert int(annotations["helm.sh/hook-weight"]) < int(job["helm.sh/hook-weight"])
        assert "annotations" not in objects[kind, "kube-synergy-certificates"]["metadata"]


def test_the_jobs_settings_are_those_of_the_values_and_fit_the_other_components(render: Render) -> None:
    given = render("tls.authorityDays=700", "tls.certificateDays=20", "tls.overlapDays=10", "tls.schedulerNames={a,b}")
    container = _certificate_pods(given)[0]["spec"]["containers"][0]
    env = {item["name"]: item.get("value", NAMESPACE) for item in container["env"]}
    settings = read_settings(env)
    days = (settings.lifetimes.authority.days, settings.lifetimes.certificate.days, settings.lifetimes.overlap.days)
    assert days == (700, 20, 10)
    host = f"kube-synergy-extender.{NAMESPACE}.svc"
    assert settings.wanted.extender[0] == host
    wanted = {host, f"{host}.cluster.local", f"kube-synergy-extender.{NAMESPACE}", "kube-synergy-extender"}
    assert set(settings.wanted.extender) == wanted
    names = {item["name"]: item.get("value") for item in _container(given, "extender")["env"]}[
        "SYNERGY_SCHEDULER_NAMES"
    ]
    assert settings.wanted.scheduler == "a"
    assert names == "a,b"


def test_the_secrets_that_the_job_writes_are_those_that_are_mounted(objects: Rendered) -> None:
    def secrets(component: str) -> list[str]:
        volumes = _pod(objects, component)["spec"]["volumes"]
        return [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]

    assert secrets("extender") == secrets("operator") == [EXTENDER]
    assert secrets("scheduler") == [SCHEDULER]
    rules = objects["Role", "kube-synergy-certificates"]["rules"]
    named = {name for rule in rules if rule["resources"] == ["secrets"] for name in rule.get("resourceNames", ())}
    assert named == {AUTHORITY, EXTENDER, SCHEDULER}
    assert ("Deployment", SCHEDULER_DEPLOYMENT) in objects


@pytest.mark.parametrize("which", [0, 1])
def test_the_job_keeps_to_the_restricted_security_standard(objects: Rendered, which: int) -> None:
    pod = _certificate_pods(objects)[which]["spec"]
    security = pod["containers"][0]["securityContext"]
    assert (pod["securityContext"]["runAsNonRoot"], security["readOnlyRootFilesystem"]) == (True, True)
    assert security["capabilities"] == {"drop": ["ALL"]}


def test_cert_manager_makes_the_same_secrets_on_request(render: Render) -> None:
    given = render("tls.certManager.enabled=true", "tls.certManager.issuerRef.name=ours", "tls.certificateDays=10")
    assert not [name for kind, name in given if "certificates" in name]
    server, client = (given["Certificate", name]["spec"] for name in (EXTENDER, SCHEDULER))
    assert (server["secretName"], client["secretName"]) == (EXTENDER, SCHEDULER)
    assert server["commonName"] == server["dnsNames"][0] == f"kube-synergy-extender.{NAMESPACE}.svc"
    assert client["commonName"] == "kube-synergy-scheduler"
    assert (server["usages"][-1], client["usages"][-1]) == ("server auth", "client auth")
    assert server["issuerRef"] == {"name": "ours", "kind": "Issuer", "group": "cert-manager.io"}
    assert server["duration"] == "240h"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("tls.extenderSecret=mine",), "tls.extenderSecret and tls.schedulerSecret: give both, or neither"),
        (("tls.schedulerSecret=mine",), "tls.extenderSecret and tls.schedulerSecret: give both, or neither"),
        (("tls.certManager.enabled=true",), "tls.certManager.issuerRef.name: name the Issuer"),
        (
            ("tls.certManager.enabled=true", "tls.extenderSecret=a", "tls.schedulerSecret=b"),
            "leave tls.extenderSecret and tls.schedulerSecret empty",
        ),
        (("tls.authorityDays=100", "tls.overlapDays=10", "tls.certificateDays=101"), "tls.certificateDays: "),
        (("tls.authorityDays=100", "tls.overlapDays=17"), "tls.overlapDays: at most a sixth of tls.authorityDays"),
    ],
)
def test_certificate_values_that_contradict_each_other_are_refused(
    helm: Callable[..., Any], chart: Path, values: tuple[str, ...], words: str
) -> None:
    result = helm("template", "x", str(chart), *(f"--set={value}" for value in values))
    assert result.returncode != 0
    assert words in result.stderr


def test_given_secrets_are_used_and_none_is_made(render: Render) -> None:
    given = render("tls.extenderSecret=mine-extender", "tls.schedulerSecret=mine-scheduler")
    assert not [name for kind, name in given if "certificates" in name]

    def secrets(component: str) -> list[str]:
        volumes = _pod(given, component)["spec"]["volumes"]
        return [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]

    assert secrets("extender") == secrets("operator") == ["mine-extender"]
    assert secrets("scheduler") == ["mine-scheduler"]


def test_the_default_policy_is_no_object_of_the_chart_but_a_setting_of_its_job(objects: Rendered, chart: Path) -> None:
    assert not [kind for kind, _ in objects if kind == "SchedulingPolicy"]
    environment = _definitions_environment(objects)
    spec = json.loads(environment["SYNERGY_DEFAULT_POLICY"])
    assert TypeAdapter(SchedulingPolicySpec).validate_python(spec).policy == "2d-las"
    assert spec == yaml.safe_load((chart / "values.yaml").read_text())["schedulingPolicy"]["spec"]
    assert definitions.read_settings(environment) == definitions.UpgradeSettings(
        upgrade=True, allow_downgrade=False, policy=spec
    )


def test_the_definitions_job_comes_first_and_goes_when_both_of_its_tasks_are_turned_off(render: Render) -> None:
    hooks = {
        key: int(item["metadata"]["annotations"]["helm.sh/hook-weight"])
        for key, item in render().items()
        if "helm.sh/hook" in (item["metadata"].get("annotations") or {})
    }
    own = {key: weight for key, weight in hooks.items() if key[1] == "kube-synergy-definitions"}
    assert max(own.values()) == own["Job", "kube-synergy-definitions"] < min(hooks[key] for key in hooks.keys() - own)
    without = render("crds.upgrade=false", "schedulingPolicy.create=false")
    assert not [name for _, name in without if name == "kube-synergy-definitions"]
    given = definitions.read_settings(
        _definitions_environment(render("crds.upgrade=false", "crds.allowDowngrade=true"))
    )
    assert (given.upgrade, given.allow_downgrade) == (False, True)


def test_the_definitions_job_may_touch_each_of_the_charts_definitions_by_name(
    objects: Rendered, render: Render
) -> None:
    upgrade, policy = objects["ClusterRole", "kube-synergy-definitions"]["rules"]
    assert upgrade["resourceNames"] == sorted(kind.crd_name for kind in KINDS)
    assert (policy["resources"], policy["verbs"]) == (["schedulingpolicies"], ["create"])
    for value, left in (("crds.upgrade=false", policy), ("schedulingPolicy.create=false", upgrade)):
        assert render(value)["ClusterRole", "kube-synergy-definitions"]["rules"] == [left]


def test_no_template_looks_into_the_cluster(chart: Path) -> None:
    for file in (chart / "templates").iterdir():
        assert "lookup " not in file.read_text(), file.name


def _definitions_environment(objects: Rendered) -> dict[str, str]:
    (container,) = objects["Job", "kube-synergy-definitions"]["spec"]["template"]["spec"]["containers"]
    return {item["name"]: item["value"] for item in container["env"]}


@pytest.mark.parametrize(
    ("value", "absent"),
    [
        ("extender.replicas=1", ("PodDisruptionBudget", "kube-synergy-extender")),
        ("rbac.aggregateToUserRoles=false", ("ClusterRole", "kube-synergy-edit")),
    ],
)
def test_what_a_value_turns_off_is_gone(render: Render, objects: Rendered, value: str, absent: tuple[str, str]) -> None:
    assert absent in objects
    assert absent not in render(value)


@pytest.mark.parametrize("component", ["extender", "operator"])
def test_the_service_monitor_is_made_on_request_and_finds_the_metrics_port(
    render: Render, objects: Rendered, component: str
) -> None:
    assert not [kind for kind, _ in objects if kind == "ServiceMonitor"]
    rendered = render("metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.labels.release=prometheus")
    monitor = rendered["ServiceMonitor", f"kube-synergy-{component}"]
    service = rendered["Service", f"kube-synergy-{component}"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert {end["port"] for end in monitor["spec"]["endpoints"]} <= {port["name"] for port in service["spec"]["ports"]}
    pod = rendered["Deployment", f"kube-synergy-{component}"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pod.items()
    ports = {port["name"] for port in _container(rendered, component)["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_deletions_of_pods_of_our_scheduler_are_looked_at(render: Render, objects: Rendered) -> None:
    policy = objects["ValidatingAdmissionPolicy", "kube-synergy-deletion"]["spec"]
    (condition,) = policy["matchConditions"]
    assert condition["expression"] == f"oldObject.spec.schedulerName == '{SCHEDULER_NAME}'"
    assert ("ValidatingAdmissionPolicy", "kube-synergy-deletion") not in render("tenancy.admissionPolicy=false")


def test_alerts_are_made_on_request_with_links_to_their_runbooks(render: Render, objects: Rendered) -> None:
    assert not [kind for kind, _ in objects if kind == "PrometheusRule"]
    values = ("metrics.prometheusRule.enabled=true", "metrics.prometheusRule.labels.release=prometheus")
    rule = render(*values, "metrics.prometheusRule.runbookUrl=https://wiki.example/alerts")[
        "PrometheusRule", "kube-synergy"
    ]
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    alerts = {one["alert"]: one for group in rule["spec"]["groups"] for one in group["rules"]}
    assert alerts["KubeSynergyNoLeader"]["annotations"]["runbook_url"] == (
        "https://wiki.example/alerts#kubesynergynoleader"
    )
    plain = render(*values)["PrometheusRule", "kube-synergy"]
    assert plain["spec"] == rules(), "without an address the alerts are those of the file, templates and all"
    without = render(*values, "dashboard.enabled=false")["PrometheusRule", "kube-synergy"]
    gone = {group["name"] for group in plain["spec"]["groups"]} - {group["name"] for group in without["spec"]["groups"]}
    assert gone == {"kube-synergy-dashboard"}, "who turns the dashboard off is not told that it is missing"


def test_dashboards_are_made_on_request_as_grafana_loads_them(render: Render, objects: Rendered) -> None:
    assert not [name for kind, name in objects if kind == "ConfigMap" and name.startswith("kube-synergy-dashboard-")]
    rendered = render("metrics.dashboards.enabled=true", "metrics.dashboards.labels.team=ml")
    made = {
        name: one
        for (kind, name), one in rendered.items()
        if kind == "ConfigMap" and name.startswith("kube-synergy-dashboard-")
    }
    assert made.keys() == {f"kube-synergy-dashboard-{path.stem}" for path in DASHBOARDS.glob("*.json")}
    for config_map in made.values():
        assert config_map["metadata"]["labels"].items() >= {"grafana_dashboard": "1", "team": "ml"}.items()
        ((name, text),) = config_map["data"].items()
        assert json.loads(text) == json.loads((DASHBOARDS / name).read_text())


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
    cluster = {
        "ClusterRole",
        "ClusterRoleBinding",
        "PriorityClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    for (kind, _), item in objects.items():
        expected = None if kind in cluster else NAMESPACE
        assert item["metadata"].get("namespace") == expected


def test_profile_runs_read_the_exporter_that_the_values_name(objects: Rendered, render: Render) -> None:
    assert "SYNERGY_DCGM_URL" not in {item["name"] for item in _container(objects, "operator")["env"]}
    found = render("operator.dcgmExporter.url=http://{hostIP}:9400/metrics", "operator.dcgmExporter.intervalSeconds=1")
    env = {item["name"]: item["value"] for item in _container(found, "operator")["env"]}
    assert env["SYNERGY_DCGM_URL"] == "http://{hostIP}:9400/metrics"
    assert env["SYNERGY_DCGM_INTERVAL_S"] == "1"
