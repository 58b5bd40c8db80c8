"""The product's own pods in the cluster."""

from synergy_cli.product import NAMESPACE
from synergy_kube import KubeClient
from synergy_kube.resources import PODS


async def kill(kube: KubeClient, *components: str) -> None:
    """Kill all replicas of these components (`operator`, `extender`) without notice; others take their place."""
    for pod in (await kube.list(PODS, NAMESPACE))["items"]:
        name = pod["metadata"]["name"]
        if name.startswith(tuple(f"kube-synergy-{component}-" for component in components)):
            await kube.delete(PODS, name, NAMESPACE, grace_seconds=0)
