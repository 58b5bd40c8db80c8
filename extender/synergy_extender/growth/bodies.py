"""The objects that ask for nodes. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from synergy_api.cluster.pools import worker_tolerations
from synergy_api.names import ANNOTATION_FAILURES, API_VERSION, LABEL_POOL, RESOURCE_GPU
from synergy_api.resources.gpu_pool import GPUPoolSpec
from synergy_api.resources.pool_autoscaling import PoolAutoscaling

_LONGEST_POOL: Final = 200
_PAUSE: Final = "registry.k8s.io/pause:3.10"
"""No pod is made of the template: the autoscaler only reads what it asks for."""


def template_name(pool: str) -> str:
    """The PodTemplate of a pool's requests."""
    return f"kube-synergy-{pool[:_LONGEST_POOL]}"


def request_name(pool: str, now: float) -> str:
    """The name of a request that is made at `now`. A pool makes one in a second at the most."""
    return f"kube-synergy-{pool[:_LONGEST_POOL]}-{int(now):x}"


def pod_template(pool: Mapping[str, Any], spec: GPUPoolSpec, how: PoolAutoscaling) -> dict[str, Any]:
    """A pod that takes all GPUs of a new node: as many pods as nodes. It goes with its GPUPool."""
    resource = spec.devices.resource or RESOURCE_GPU
    amounts = {resource: str(how.node.gpus * spec.sharing.replicas)}
    container = {"name": "node", "image": _PAUSE, "resources": {"requests": amounts, "limits": amounts}}
    tolerations = [{"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in how.taints]
    return {
        "metadata": _metadata(pool),
        "template": {
            "metadata": {"labels": {LABEL_POOL: pool["metadata"]["name"]}},
            "spec": {
                "nodeSelector": dict(spec.node_selector),
                "tolerations": [*map(dict, worker_tolerations(resource)), *tolerations],
                "containers": [container],
                "restartPolicy": "Never",
            },
        },
    }


def provisioning_request(
    pool: Mapping[str, Any], how: PoolAutoscaling, name: str, nodes: int, failures: int
) -> dict[str, Any]:
    """A request for so many nodes, after so many that have failed."""
    metadata = _metadata(pool)
    metadata |= {"name": name, "annotations": {ANNOTATION_FAILURES: str(failures)}}
    return {
        "metadata": metadata,
        "spec": {
            "provisioningClassName": how.provisioning_class,
            "parameters": {"ValidUntilSeconds": str(how.timeout_seconds)},
            "podSets": [{"podTemplateRef": {"name": template_name(pool["metadata"]["name"])}, "count": nodes}],
        },
    }


def _metadata(pool: Mapping[str, Any]) -> dict[str, Any]:
    name = pool["metadata"]["name"]
    owner = {"apiVersion": API_VERSION, "kind": "GPUPool", "name": name, "uid": pool["metadata"]["uid"]}
    return {"labels": {LABEL_POOL: name}, "ownerReferences": [owner]}
