"""The chart as Argo CD keeps it: rendered, applied by the server with a tracking label, pruned, and applied again.

Argo CD itself does not run here. The test does what its sync does with `ServerSideApply=true` and `prune`: hooks are
left out, the crds folder is applied, each object gets the tracking label and the field manager `argocd-controller`, and
what has the label and is rendered no more is deleted.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from support.programs import attempt, run
from synergy_devcluster import Cluster
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import SCHEDULING_POLICIES, SECRETS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]

MANAGER = "argocd-controller"
LABEL = "argocd.argoproj.io/instance"
INSTANCE = "synergy-by-argo"
HOOK = "helm.sh/hook"
Object = dict[str, Any]


class Argo:
    """One Application."""

    def __init__(self, cluster: Cluster, repository: Path, namespace: str) -> None:
        self._cluster = cluster
        self._chart = repository / "helm" / "kube-synergy"
        self.namespace = namespace

    async def rendered(self, *values: str) -> list[Object]:
        """What a sync applies: no hooks, each object with the tracking label. Cluster-scoped names are the test's own:
        the chart may be installed on this cluster."""
        told = yaml.safe_load(await self.kubectl("version", "-o", "yaml"))
        version = f"--kube-version={told['serverVersion']['gitVersion']}"
        where = f"--namespace={self.namespace}"
        text = await run(self._cluster, "helm", "template", "synergy", str(self._chart), where, version, *values)
        objects = [item for item in yaml.safe_load_all(text) if item]
        kept = [item for item in objects if HOOK not in (item["metadata"].get("annotations") or {})]
        for item in kept:
            item["metadata"].setdefault("labels", {})[LABEL] = INSTANCE
            if "namespace" not in item["metadata"]:
                item["metadata"]["name"] = f"argo-{item['metadata']['name']}"
            if "roleRef" in item and item["roleRef"]["kind"] == "ClusterRole":
                item["roleRef"]["name"] = f"argo-{item['roleRef']['name']}"
            if "policyName" in item.get("spec", {}):
                item["spec"]["policyName"] = f"argo-{item['spec']['policyName']}"
        return kept

    async def kubectl(self, *words: str, text: str = "") -> str:
        """The output of a kubectl that must succeed."""
        code, output, errors = await attempt(self._cluster, "kubectl", *words, text_in=text)
        assert code == 0, errors
        return output

    async def sync(self, objects: list[Object]) -> dict[str, str]:
        """Apply, then prune. Returns the resourceVersion of each object of the Application."""
        apply = ("apply", "--server-side", f"--field-manager={MANAGER}", "-f", "-")
        await self.kubectl(*apply, text=yaml.safe_dump_all(objects))
        wanted = {_name(item) for item in objects}
        for item in await self.live(objects):
            if _name(item) not in wanted:
                await self.kubectl("delete", "-f", "-", "--wait=false", text=yaml.safe_dump(item))
        return {_name(item): item["metadata"]["resourceVersion"] for item in await self.live(objects)}

    async def live(self, objects: list[Object]) -> list[Object]:
        """All objects with the tracking label, of all kinds that the chart has."""
        kinds = sorted({_kind(item) for item in (*objects, *await self.rendered())})
        found = await self.kubectl("get", ",".join(kinds), "-A", f"--selector={LABEL}={INSTANCE}", "-o", "yaml")
        items: list[Object] = yaml.safe_load(found)["items"]
        here = [item for item in items if item["metadata"].get("namespace", self.namespace) == self.namespace]
        return [item for item in here if "deletionTimestamp" not in item["metadata"]]

    async def differs(self, objects: list[Object]) -> list[str]:
        """The objects that a sync would change: Argo CD compares the live object with a dry run of the apply."""
        dry = ("apply", "--server-side", f"--field-manager={MANAGER}", "--dry-run=server", "-o", "yaml", "-f", "-")
        predicted = yaml.safe_load(await self.kubectl(*dry, text=yaml.safe_dump_all(objects)))["items"]
        there = {_name(item): _compared(item) for item in await self.live(objects)}
        return [_name(item) for item in predicted if there.get(_name(item)) != _compared(item)]

    async def remove(self) -> None:
        """Delete the Application with all that it has."""
        for item in await self.live(await self.rendered()):
            await self.kubectl("delete", "-f", "-", "--wait=false", "--ignore-not-found", text=yaml.safe_dump(item))


def _name(item: Object) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"


def _kind(item: Object) -> str:
    group = item["apiVersion"].rpartition("/")[0]
    return f"{item['kind']}.{item['apiVersion'].rpartition('/')[2]}.{group}" if group else item["kind"]


def _compared(item: Object) -> Object:
    """What is compared: not the status, nor what the API server counts."""
    counted = ("managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in item["metadata"].items() if key not in counted}
    return {**{key: value for key, value in item.items() if key != "status"}, "metadata": metadata}


def _unmoved(item: Object) -> str:
    """What a write changes: the resourceVersion; of objects whose status controllers write, the generation."""
    metadata = item["metadata"]
    counted = "status" in item and "generation" in metadata
    return f"generation {metadata['generation']}" if counted else str(metadata["resourceVersion"])


@pytest_asyncio.fixture
async def argo(devcluster: Cluster, repository: Path, namespace: str) -> AsyncIterator[Argo]:
    """An Application, removed after the test."""
    application = Argo(devcluster, repository, namespace)
    yield application
    await application.remove()


@pytest_asyncio.fixture
async def own_policy(kube: KubeClient) -> AsyncIterator[None]:
    """A SchedulingPolicy `default` as the chart's Job makes it, if there is none; put back after the test."""
    try:
        before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    except NotFound:
        before = None
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": {"policy": "las"}})
    yield
    await kube.delete(SCHEDULING_POLICIES, "default")
    if before is not None:
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": before})


@pytest.mark.usefixtures("own_policy")
async def test_a_second_sync_changes_nothing_and_keeps_what_the_administrator_has_edited(
    argo: Argo, kube: KubeClient
) -> None:
    first = await argo.sync(await argo.rendered())
    assert "SchedulingPolicy/default" not in first, "the chart must not own it"
    assert not [name for name in first if name.startswith("Secret/")], "certificates are not of the chart"

    edited = '{"spec": {"policy": "srtf", "roundSeconds": 77, "failingNodes": {"jobs": 5}}}'
    await argo.kubectl("patch", "schedulingpolicy", "default", "--type=merge", f"--patch={edited}")
    key = {"metadata": {"name": "kube-synergy-ca"}, "stringData": {"tls.crt": "ours"}}
    await kube.create(SECRETS, key, argo.namespace)
    # an administrator's own fields in objects of the chart
    await argo.kubectl("annotate", f"--namespace={argo.namespace}", "deployment/kube-synergy-extender", "note=mine")

    objects = await argo.rendered()
    assert await argo.differs(objects) == []
    before = {_name(item): _unmoved(item) for item in await argo.live(objects)}
    await argo.sync(objects)
    assert {_name(item): _unmoved(item) for item in await argo.live(objects)} == before
    assert len(before) == len(objects)
    deployment = yaml.safe_load(
        await argo.kubectl("get", "-o", "yaml", f"--namespace={argo.namespace}", "deployment/kube-synergy-extender")
    )
    assert deployment["metadata"]["annotations"]["note"] == "mine"
    spec = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    assert (spec["policy"], spec["roundSeconds"], spec["failingNodes"]["jobs"]) == ("srtf", 77, 5)
    assert "kube-synergy-ca" in {
        item["metadata"]["name"] for item in (await kube.list(SECRETS, argo.namespace))["items"]
    }, "a prune must not take the authority that workers trust"


async def test_what_is_rendered_no_more_is_pruned_and_nothing_else(argo: Argo, kube: KubeClient) -> None:
    with_dashboard = await argo.sync(await argo.rendered("--set=dashboard.enabled=true"))
    without = await argo.rendered("--set=dashboard.enabled=false")
    left = await argo.sync(without)
    gone = with_dashboard.keys() - left.keys()
    assert "Deployment/kube-synergy-dashboard" in gone
    assert all("dashboard" in name for name in gone), gone
    assert left.keys() == {_name(item) for item in without}
    assert await argo.differs(without) == []
