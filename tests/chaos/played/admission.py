"""Plays the kubelets' last word: a pod for which its node has no room is refused, whoever bound it there.

Two kube-schedulers at work on one cluster can bind to the same room within a moment; kwok's nodes would take both.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from support.on_cluster.observer import DIMENSIONS, number, pod_request
from synergy_kube import KubeClient, Reflector
from synergy_kube.resources import NODES

Object = Mapping[str, Any]


class Admission:
    """Admits pods in the order in which they were bound. `refusals` counts those that were not."""

    def __init__(self, kube: KubeClient) -> None:
        self.nodes = Reflector(kube, NODES)
        self.refusals = 0
        self._admitted: dict[str, dict[str, Object]] = defaultdict(dict)
        self._refused: set[str] = set()

    def forget(self, pod: Object) -> None:
        """The pod is gone, or its containers have ended."""
        self._admitted[pod["spec"].get("nodeName", "")].pop(pod["metadata"]["uid"], None)

    def refusal(self, pod: Object) -> str:
        """Why the pod is refused, as the kubelet names it; empty if its node takes it, or was asked already."""
        node, uid = self.nodes.get("", pod["spec"].get("nodeName", "")), pod["metadata"]["uid"]
        if node is None or uid in self._refused:
            return ""
        held = self._admitted[node["metadata"]["name"]]
        if uid not in held:
            for dimension in DIMENSIONS:
                used = sum(pod_request(other, dimension) for other in held.values()) + pod_request(pod, dimension)
                if used > number(node["status"]["allocatable"].get(dimension, "0")) + 1e-6:
                    self._refused.add(uid)
                    self.refusals += 1
                    return f"OutOf{dimension}"
        held[uid] = pod
        return ""
