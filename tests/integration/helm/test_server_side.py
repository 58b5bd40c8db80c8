"""Everything the chart renders is what the API server takes, for a matrix of values."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.api_server.schemas import TEMPLATE, write_schemas
from support.programs import attempt, run
from synergy_devcluster import Cluster
from synergy_devcluster.programs.toolchain import kubeconform_module, locate
from synergy_kube import KubeClient
from synergy_kube.resources import NAMESPACES

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]

VALUES = {
    "defaults": (),
    "devcluster": ("--values=values-devcluster.yaml",),
    "kind": ("--values=values-kind.yaml", "--set=scheduler.image=registry.k8s.io/kube-scheduler:v1.36.3"),
    "one of each, own certificates": (
        "--set=networkPolicy.enabled=false",
        "--set=extender.replicas=1,rbac.aggregateToUserRoles=false",
        "--set=tls.extenderSecret=one,tls.schedulerSecret=two",
    ),
    "everything set": (
        "--set=image.registry=registry.example.com/team,image.tag=v1,image.pullPolicy=Always,imagePullSecrets[0]=puller",
        "--set=podAnnotations.note=x,podLabels.team=ml,priorityClassName=system-cluster-critical",
        "--set=operator.nodeSelector.zone=a,operator.tolerations[0].operator=Exists,operator.logLevel=DEBUG",
        "--set=extender.replicas=3,extender.resources.limits.cpu=2",
        "--set=scheduler.replicas=2,scheduler.image=registry.example.com/kube-scheduler:v1.36.0",
        "--set=networkPolicy.workerNamespaces={default},networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus",
        "--set=networkPolicy.apiFrom[0].ipBlock.cidr=10.0.0.0/8,tls.schedulerNames={one,two}",
        "--set=dashboard.persistence.enabled=true,dashboard.persistence.storageClass=fast",
        "--set=schedulingPolicy.spec.policy=srtf,schedulingPolicy.spec.profiling.maxPoints=4",
    ),
}


async def _rendered(cluster: Cluster, repository: Path, namespace: str, values: tuple[str, ...]) -> str:
    chart = repository / "helm" / "kube-synergy"
    placed = [value.replace("--values=", f"--values={chart}/") for value in values]
    version = await run(cluster, "kubectl", "version", "-o", "json")
    return await run(
        cluster,
        "helm",
        "template",
        "anything",
        str(chart),
        f"--namespace={namespace}",
        f"--kube-version={yaml.safe_load(version)['serverVersion']['gitVersion']}",
        *placed,
    )


@pytest.mark.parametrize("case", VALUES)
async def test_every_object_passes_strict_validation_and_the_restricted_standard(
    devcluster: Cluster, kube: KubeClient, repository: Path, namespace: str, case: str
) -> None:
    restricted = {"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/enforce": "restricted"}
    await kube.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": restricted}})
    objects = await _rendered(devcluster, repository, namespace, VALUES[case])

    code, output, errors = await attempt(
        devcluster,
        "kubectl",
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts"),
        *("--field-manager=test", "-f", "-"),
        text_in=objects,
    )

    assert code == 0, errors
    assert "Warning" not in errors
    assert len(output.splitlines()) == len([item for item in yaml.safe_load_all(objects) if item])


async def test_a_pod_that_breaks_the_standard_would_have_been_noticed(
    devcluster: Cluster, kube: KubeClient, repository: Path, namespace: str
) -> None:
    await kube.merge_patch(
        NAMESPACES, namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted"}}}
    )
    objects = await _rendered(devcluster, repository, namespace, ())
    loosened = objects.replace("runAsNonRoot: true", "runAsNonRoot: false")
    _, _, errors = await attempt(
        devcluster,
        "kubectl",
        "apply",
        "--server-side",
        "--dry-run=server",
        "--force-conflicts",
        "-f",
        "-",
        text_in=loosened,
    )
    assert "would violate PodSecurity" in errors


@pytest.fixture(scope="module")
def kubeconform(
    devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    """Checks manifests against the schemas of this cluster's API server."""
    program = locate(devcluster.paths, print, wanted=(kubeconform_module(),))["kubeconform"]
    folder = tmp_path_factory.mktemp("schemas")
    kubectl = [str(devcluster.program("kubectl")), f"--kubeconfig={devcluster.kubeconfig}", "get", "--raw=/openapi/v2"]
    told = subprocess.run(kubectl, capture_output=True, check=True)
    write_schemas(json.loads(told.stdout), folder)

    def check(manifests: str) -> "subprocess.CompletedProcess[str]":
        command = [program, "-strict", "-summary", f"-schema-location={folder}/{TEMPLATE}"]
        return subprocess.run(command, input=manifests, capture_output=True, text=True, check=False)

    return check


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", VALUES)
async def test_every_object_conforms_to_its_schema(
    devcluster: Cluster, repository: Path, case: str, kubeconform: Callable[[str], "subprocess.CompletedProcess[str]"]
) -> None:
    objects = await _rendered(devcluster, repository, "somewhere", VALUES[case])
    result = kubeconform(objects)
    count = len([item for item in yaml.safe_load_all(objects) if item])
    assert f"Summary: {count} resources found" in result.stdout
    assert f"Valid: {count}, Invalid: 0, Errors: 0, Skipped: 0" in result.stdout, result.stdout


async def test_a_field_that_is_none_and_a_value_of_the_wrong_kind_would_have_been_noticed(
    devcluster: Cluster, repository: Path, kubeconform: Callable[[str], "subprocess.CompletedProcess[str]"]
) -> None:
    objects = await _rendered(devcluster, repository, "somewhere", ())
    misspelled = kubeconform(objects.replace("  serviceAccountName:", "  serviceAcountName:"))
    assert "additional properties 'serviceAcountName' not allowed" in misspelled.stdout
    mistyped = kubeconform(objects.replace("periodSeconds: 1\n", "periodSeconds: often\n"))
    assert "periodSeconds" in mistyped.stdout
    assert mistyped.returncode == 1


@pytest.mark.parametrize(
    ("values", "dashboard", "in_its_pod"),
    [
        ((), True, True),
        (("--set=dashboard.persistence.storageClass=fast",), True, False),
        (("--set=dashboard.persistence.claim=mine",), True, False),
        (("--set=dashboard.database.secret=db",), True, False),
        (("--set=dashboard.enabled=false",), False, False),
    ],
)
async def test_who_installs_is_told_where_the_history_is(
    devcluster: Cluster, repository: Path, values: tuple[str, ...], dashboard: bool, in_its_pod: bool
) -> None:
    chart = repository / "helm" / "kube-synergy"
    words = ("install", "anything", str(chart), "--namespace=kube-synergy", "--dry-run=client", "--output=json")
    notes = json.loads(await run(devcluster, "helm", *words, *values))["info"]["notes"]
    assert ("kubectl synergy dashboard" in notes) == dashboard
    assert ("keeps its history in its pod" in notes) == in_its_pod
    assert "kubectl edit schedulingpolicy default" in notes


async def test_the_manifest_of_a_sweep_passes_strict_validation_and_the_restricted_standard(
    devcluster: Cluster, kube: KubeClient, repository: Path, namespace: str
) -> None:
    restricted = {"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/enforce": "restricted"}
    await kube.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": restricted}})
    objects = (repository / "examples/sweep/dask.yaml").read_text()
    code, output, errors = await attempt(
        devcluster,
        "kubectl",
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", f"--namespace={namespace}"),
        *("--field-manager=test", "-f", "-"),
        text_in=objects,
    )
    assert code == 0, errors
    assert "Warning" not in errors
    assert len(output.splitlines()) == len(list(yaml.safe_load_all(objects)))
