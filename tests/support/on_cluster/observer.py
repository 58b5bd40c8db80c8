"""An independent observer: follows nodes and pods from watches and checks the promises at every event.

It counts requests on its own, from the pods' specs and what their containers really have while they are resized, and
shares no code with the ledger that it checks.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import NODES, PODS

GANG_SECONDS = 30.0
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9}
DIMENSIONS = ("cpu", "memory", "nvidia.com/gpu")

Object = Mapping[str, Any]
Key = tuple[str, str]
Gang = tuple[str, str, str]
"""Namespace, job and run."""


class Observer:
    """Gathers broken promises in `broken`: over-allocated nodes, and gangs half-bound for longer than 30 s."""

    def __init__(self, client: KubeClient) -> None:
        self.broken: list[str] = []
        self.bindings = 0
        self._nodes = Reflector(client, NODES)
        self._pods = Reflector(client, PODS, on_change=self._pod_changed)
        self._tasks: list[asyncio.Task[None]] = []
        self._half_bound_since: dict[Gang, float] = {}
        self._on_node: dict[str, dict[Key, Object]] = defaultdict(dict)
        self._of_gang: dict[Gang, dict[Key, Object]] = defaultdict(dict)

    async def __aenter__(self) -> "Observer":
        self._tasks = [asyncio.create_task(self._nodes.run())]
        await self._nodes.synced.wait()
        self._tasks.append(asyncio.create_task(self._pods.run()))
        await self._pods.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _pod_changed(self, change: Change) -> None:
        self._keep(change)
        node = ((change.new or {}).get("spec") or {}).get("nodeName")
        was = ((change.old or {}).get("spec") or {}).get("nodeName")
        if node is not None and was is None:
            self.bindings += 1
        if node is not None:
            self._check_node(node)
        gang = gang_of(change.new or change.old or {})
        if gang is not None:
            self._check_gang(gang)
        self._check_half_bound()

    def _keep(self, change: Change) -> None:
        """Pods by node and by gang, so that a change costs no look at all pods."""
        for pod in (change.old, change.new):
            if pod is None:
                continue
            places: list[dict[Key, Object]] = []
            if (node := pod["spec"].get("nodeName")) is not None:
                places.append(self._on_node[node])
            if (gang := gang_of(pod)) is not None:
                places.append(self._of_gang[gang])
            for place in places:
                if pod is change.new:
                    place[change.key] = pod
                else:
                    place.pop(change.key, None)

    def _check_node(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None:
            return
        used: dict[str, float] = defaultdict(float)
        for pod in self._on_node[name].values():
            if pod["status"].get("phase") not in ("Succeeded", "Failed"):
                for dimension in DIMENSIONS:
                    used[dimension] += pod_request(pod, dimension)
        for dimension in DIMENSIONS:
            room = number(node["status"]["allocatable"].get(dimension, "0"))
            if used[dimension] > room + 1e-6:
                self.broken.append(f"{name} over-allocated: {used[dimension]:g} of {room:g} {dimension}")

    def _check_gang(self, gang: Gang) -> None:
        bound = ["nodeName" in pod["spec"] for pod in self._of_gang[gang].values() if _takes_part(pod)]
        if not self._of_gang[gang]:
            del self._of_gang[gang]
        if any(bound) and not all(bound):
            self._half_bound_since.setdefault(gang, asyncio.get_running_loop().time())
        else:
            self._half_bound_since.pop(gang, None)

    def _check_half_bound(self) -> None:
        now = asyncio.get_running_loop().time()
        for gang, since in self._half_bound_since.items():
            if now - since > GANG_SECONDS:
                self.broken.append(f"gang {'/'.join(gang)} half-bound for {now - since:.0f} s")


def gang_of(pod: Object) -> Gang | None:
    """Namespace, job and run of a worker; None for another pod."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    if labels.get("kube-synergy.dev/role") != "worker":
        return None
    return metadata["namespace"], labels["kube-synergy.dev/job"], labels["kube-synergy.dev/run"]


def _takes_part(pod: Object) -> bool:
    """Whether the pod is to be bound with its gang, or is."""
    alive = pod["status"].get("phase") in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]
    return alive and not pod["spec"].get("schedulingGates")


def pod_request(pod: Object, dimension: str) -> float:
    """What the scheduler counts for a pod: containers summed, or the largest init container if that is more."""

    def of(container: Object) -> float:
        return number((container.get("resources") or {}).get("requests", {}).get(dimension, "0"))

    def held(container: Object) -> float:
        return max(of(container), of(really.get(container["name"], {})))

    spec = pod["spec"]
    really = {item["name"]: item for item in (pod.get("status") or {}).get("containerStatuses") or []}
    sidecars = [item for item in spec.get("initContainers", []) if item.get("restartPolicy") == "Always"]
    starters = [item for item in spec.get("initContainers", []) if item.get("restartPolicy") != "Always"]
    running = sum(map(held, spec["containers"])) + sum(map(of, sidecars))
    return max([running, *(of(item) for item in starters)])


def number(text: str) -> float:
    """A quantity as a float, good enough to compare."""
    for suffix, unit in _UNITS.items():
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * unit
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
