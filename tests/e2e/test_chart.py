"""The chart's life on a cluster: what an upgrade, a rollback and a removal keep."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.programs import run
from synergy_cli.product import NAMESPACE, RELEASE, install
from synergy_devcluster import Cluster
from synergy_kube import KubeClient
from synergy_kube.errors import NotFound
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES, PODS, SCHEDULING_POLICIES, SECRETS

pytestmark = pytest.mark.e2e

SECRET_NAMES = ("kube-synergy-extender-tls", "kube-synergy-scheduler-tls")
DEPLOYMENT_NAMES = ("kube-synergy-operator", "kube-synergy-extender", "kube-synergy-scheduler")


async def _secrets(kube: KubeClient) -> list[Any]:
    return [(await kube.get(SECRETS, name, NAMESPACE))["data"] for name in SECRET_NAMES]


async def _helm(devcluster: Cluster, *arguments: str) -> str:
    return await run(devcluster, "helm", *arguments, f"--namespace={NAMESPACE}")


async def _upgrade(devcluster: Cluster, repository: Path, *values: str) -> None:
    chart = repository / "helm" / "kube-synergy"
    files = f"--values={chart}/values-devcluster.yaml"
    await _helm(devcluster, "upgrade", RELEASE, str(chart), files, *values, "--wait", "--timeout=120s")


@pytest_asyncio.fixture
async def as_it_was(devcluster: Cluster, kube: KubeClient, product: None) -> AsyncIterator[None]:
    """After the test the chart and the default policy are as they were."""
    before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    yield
    install(devcluster, report=print)
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": before})


async def test_all_components_run_and_have_elected_leaders(kube: KubeClient, product: None) -> None:
    for name in DEPLOYMENT_NAMES:
        status = (await kube.get(DEPLOYMENTS, name, NAMESPACE))["status"]
        assert status["readyReplicas"] == status["replicas"]
    for lease in ("kube-synergy-extender", "kube-synergy-scheduler"):
        assert (await kube.get(LEASES, lease, NAMESPACE))["spec"]["holderIdentity"]


async def test_no_component_restarted_or_logged_a_refusal_of_its_rights(
    devcluster: Cluster, kube: KubeClient, product: None
) -> None:
    pods = (await kube.list(PODS, NAMESPACE, label_selector="app.kubernetes.io/name=kube-synergy"))["items"]
    current = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    assert len(current) == 4
    for pod in current:
        name = pod["metadata"]["name"]
        assert [status["restartCount"] for status in pod["status"]["containerStatuses"]] == [0], name
        log = await run(devcluster, "kubectl", "logs", "-n", NAMESPACE, name)
        assert not [line for line in log.splitlines() if "forbidden" in line.lower()], name


async def test_an_upgrade_and_a_rollback_keep_certificates_and_the_users_policy(
    devcluster: Cluster, kube: KubeClient, repository: Path, as_it_was: None
) -> None:
    certificates = await _secrets(kube)
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"roundSeconds": 4321}})

    await _upgrade(devcluster, repository, "--set=podLabels.upgraded=yes")

    extender = await kube.get(DEPLOYMENTS, "kube-synergy-extender", NAMESPACE)
    assert extender["spec"]["template"]["metadata"]["labels"]["upgraded"] == "yes"
    assert await _secrets(kube) == certificates
    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321

    await _helm(devcluster, "rollback", RELEASE, "--wait", "--timeout=120s")

    extender = await kube.get(DEPLOYMENTS, "kube-synergy-extender", NAMESPACE)
    assert "upgraded" not in extender["spec"]["template"]["metadata"]["labels"]
    assert await _secrets(kube) == certificates
    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321


async def test_a_removal_keeps_definitions_and_policy_and_a_new_install_takes_them_over(
    devcluster: Cluster, kube: KubeClient, as_it_was: None
) -> None:
    certificates = await _secrets(kube)
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"roundSeconds": 4321}})

    await _helm(devcluster, "uninstall", RELEASE, "--wait", "--timeout=120s")

    with pytest.raises(NotFound):
        await kube.get(DEPLOYMENTS, "kube-synergy-operator", NAMESPACE)
    definition = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, "trainingjobs.kube-synergy.dev")
    assert "deletionTimestamp" not in definition["metadata"]
    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321

    install(devcluster, report=print)

    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321
    assert await _secrets(kube) != certificates
