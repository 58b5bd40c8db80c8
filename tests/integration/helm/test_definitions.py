"""The Job for definitions and the default policy on a real API server, with the rights that the chart gives it."""

import copy
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from support.api_server.crds import apply_crds
from support.on_cluster.service_account import kubeconfig_of
from support.programs import run as run_program
from support.waiting import eventually
from synergy_api.names import ANNOTATION_VERSION, PRODUCT_VERSION
from synergy_devcluster import Cluster
from synergy_kube import ApiError, KubeClient, NotFound
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULING_POLICIES
from synergy_operator.definitions.job import UpgradeSettings, packaged, run
from synergy_operator.definitions.upgrade_check import DowngradeError

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]

POLICY = {"policy": "fifo", "roundSeconds": 4321}
TRAINING_JOBS_CRD = "trainingjobs.kube-synergy.dev"
THROWAWAY = "widgets.kube-synergy.dev"


async def _role(devcluster: Cluster, repository: Path) -> list[dict[str, Any]]:
    chart = str(repository / "helm" / "kube-synergy")
    rendered = await run_program(devcluster, "helm", "template", "kube-synergy", chart, "--kube-version=1.36")
    roles = [item for item in yaml.safe_load_all(rendered) if item and item["kind"] == "ClusterRole"]
    (rules,) = [role["rules"] for role in roles if role["metadata"]["name"] == "kube-synergy-definitions"]
    return list(rules)


@pytest_asyncio.fixture
async def job(devcluster: Cluster, kube: KubeClient, repository: Path, tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client with the rights of the Job, and of one more definition that these tests make and remove."""
    rules = copy.deepcopy(await _role(devcluster, repository))
    rules[0]["resourceNames"].append(THROWAWAY)
    async with (
        kubeconfig_of(kube, devcluster.kubeconfig, rules, tmp_path) as file,
        await KubeClient.connect(kubeconfig=str(file)) as client,
    ):
        yield client


@pytest_asyncio.fixture
async def put_back(kube: KubeClient, repository: Path) -> AsyncIterator[None]:
    """The definitions and the policy as they were, after the test."""
    before: dict[str, Any] | None = None
    with suppress(NotFound):
        before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    yield
    with suppress(NotFound):
        await kube.delete(SCHEDULING_POLICIES, "default")
    if before is not None:
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": before})
    await apply_crds(kube, repository)


async def _older(kube: KubeClient, version: str | None) -> None:
    """As Helm's `crds` folder has left it years ago: no field `marks`, written by another manager, by an update."""
    there = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, TRAINING_JOBS_CRD)
    there["metadata"].pop("managedFields")
    annotations = there["metadata"].setdefault("annotations", {})
    annotations.pop(ANNOTATION_VERSION, None)
    if version is not None:
        annotations[ANNOTATION_VERSION] = version
    del _status(there)["marks"]
    _status(there)["bygone"] = {"type": "string"}
    await kube.replace(CUSTOM_RESOURCE_DEFINITIONS, TRAINING_JOBS_CRD, there)


def _status(definition: dict[str, Any]) -> dict[str, Any]:
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields: dict[str, Any] = schema["properties"]["status"]["properties"]
    return fields


@pytest.mark.parametrize("version", [None, "0.0.9"])
async def test_an_older_definition_is_replaced_whole_and_its_objects_stay(
    kube: KubeClient, job: KubeClient, put_back: None, version: str | None
) -> None:
    await _older(kube, version)
    uid = (await kube.get(CUSTOM_RESOURCE_DEFINITIONS, TRAINING_JOBS_CRD))["metadata"]["uid"]
    done = await run(job, UpgradeSettings(), packaged())
    there = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, TRAINING_JOBS_CRD)
    wanted = next(item for item in packaged() if item["metadata"]["name"] == TRAINING_JOBS_CRD)
    assert _status(there).keys() == _status(wanted).keys()
    assert there["metadata"]["annotations"][ANNOTATION_VERSION] == PRODUCT_VERSION
    assert there["metadata"]["uid"] == uid
    before = version or "one without a version"
    assert f"definition {TRAINING_JOBS_CRD} {PRODUCT_VERSION}: applied over {before}" in done
    again = await run(job, UpgradeSettings(), packaged())
    assert len(again) == len(packaged())
    assert all(line.endswith(": unchanged") for line in again)


async def test_a_newer_definition_stops_the_job_before_it_changes_anything_and_may_be_forced(
    kube: KubeClient, job: KubeClient, put_back: None
) -> None:
    await _older(kube, "99.0.0")
    versions = {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        for item in (await kube.list(CUSTOM_RESOURCE_DEFINITIONS))["items"]
    }
    with pytest.raises(DowngradeError, match=f"{TRAINING_JOBS_CRD} is of version 99.0.0, newer than {PRODUCT_VERSION}"):
        await run(job, UpgradeSettings(policy=POLICY), packaged())
    for item in (await kube.list(CUSTOM_RESOURCE_DEFINITIONS))["items"]:
        assert versions[item["metadata"]["name"]] == item["metadata"]["resourceVersion"]
    await run(job, UpgradeSettings(allow_downgrade=True), packaged())
    there = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, TRAINING_JOBS_CRD)
    assert there["metadata"]["annotations"][ANNOTATION_VERSION] == PRODUCT_VERSION
    assert "marks" in _status(there)


async def test_a_definition_that_is_new_is_created_by_its_name_alone(kube: KubeClient, job: KubeClient) -> None:
    new = copy.deepcopy(packaged()[1])
    new["metadata"]["name"] = THROWAWAY
    new["spec"]["names"] = {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"}
    other = copy.deepcopy(new)
    other["metadata"]["name"] = "gadgets.kube-synergy.dev"
    try:
        (line,) = await run(job, UpgradeSettings(), [new])
        assert line.endswith("applied over none")
        with pytest.raises(ApiError, match="forbidden"):
            await run(job, UpgradeSettings(), [other])
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, THROWAWAY)


async def test_the_default_policy_is_made_where_there_is_none_and_never_changed(
    kube: KubeClient, job: KubeClient, put_back: None
) -> None:
    with suppress(NotFound):
        await kube.delete(SCHEDULING_POLICIES, "default")
    made = await run(job, UpgradeSettings(upgrade=False, policy=POLICY), [])
    assert made == ["SchedulingPolicy default: created"]
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"roundSeconds": 77}})
    there = await kube.get(SCHEDULING_POLICIES, "default")
    left = await run(job, UpgradeSettings(upgrade=False, policy=POLICY), [])
    assert left == ["SchedulingPolicy default: there already, left as it is"]
    assert (await kube.get(SCHEDULING_POLICIES, "default"))["metadata"] == there["metadata"]


async def test_the_chart_renders_the_same_with_and_without_a_cluster(
    devcluster: Cluster, kube: KubeClient, repository: Path, put_back: None
) -> None:
    """Also where the policy is there already: what a GitOps tool renders is what an install renders."""
    with suppress(ApiError):
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": POLICY})

    async def stands() -> bool:
        return bool((await kube.get(SCHEDULING_POLICIES, "default"))["spec"])

    await eventually(stands, seconds=10, what="the policy")
    version = yaml.safe_load(await run_program(devcluster, "kubectl", "version", "-o", "json"))
    chart = str(repository / "helm" / "kube-synergy")
    known = f"--kube-version={version['serverVersion']['gitVersion']}"
    common = ("helm", "template", "kube-synergy", chart, "--namespace=somewhere", known)
    outside = await run_program(devcluster, *common)
    inside = await run_program(devcluster, *common, "--dry-run=server")
    assert outside == inside
    kinds = [item["kind"] for item in yaml.safe_load_all(inside) if item]
    assert "SchedulingPolicy" not in kinds, "a GitOps tool would delete and make anew what is a hook"
