"""Software of others in the same cluster: plain pods, DaemonSets, and an administrator with kubectl."""

from collections.abc import Mapping
from typing import Any

from support.waiting import eventually
from synergy_kube import KubeClient, Resource
from synergy_kube.resources import NODES, PODS

DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
HOST = "kubernetes.io/hostname"

Json = dict[str, Any]


def foreign_pod(name: str, node: str, **limits: str) -> Json:
    """A pod of the default scheduler for one node; `gpu` among the limits means whole GPUs."""
    return {"metadata": {"name": name}, "spec": {"nodeSelector": {HOST: node}, **_sleeper(limits)}}


def daemon_set(name: str, pool: str, **limits: str) -> Json:
    """A DaemonSet on the nodes whose label `pool` is so."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"nodeSelector": {"pool": pool}, **_sleeper(limits)}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


def _sleeper(limits: Mapping[str, str]) -> Json:
    amounts = {"nvidia.com/gpu" if key == "gpu" else key: value for key, value in limits.items()}
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "sleep", "image": "example/other:1", "resources": {"limits": amounts}}],
    }


async def label(kube: KubeClient, nodes: list[str], **labels: str | None) -> None:
    """Set labels of nodes, or take those away that are None."""
    for node in nodes:
        await kube.merge_patch(NODES, node, {"metadata": {"labels": labels}})


async def bound(kube: KubeClient, namespace: str, count: int, label_selector: str = "") -> list[Json]:
    """The pods with these labels once so many are bound."""

    async def there() -> list[Json] | None:
        pods: list[Json] = (await kube.list(PODS, namespace, label_selector=label_selector))["items"]
        return pods if sum("nodeName" in pod["spec"] for pod in pods) >= count else None

    return await eventually(there, seconds=30, what=f"{count} pods with {label_selector or 'any label'} to be bound")
