"""What is really free on each node: allocatable, minus the pods there, minus bindings on their way."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.cluster.slices import DeviceKey
from synergy_api.parts.allocation import NodeShare
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.views import JobView, PodView

ASSUMED_SECONDS = 60.0
"""How long a binding that was sent counts without having been seen in the watch."""


@dataclass(frozen=True, slots=True)
class _Assumed:
    node: str
    pod: PodView
    until: float


class AssumedBindings:
    """Bindings that were sent and not yet seen, by pod UID. Each counts for `ASSUMED_SECONDS` by `clock` (monotonic
    seconds), on every replica: one that never came about must not keep its room on a replica that does not plan."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._by_uid: dict[str, _Assumed] = {}
        self._clock = clock

    def __len__(self) -> int:
        return sum(1 for _ in self._counting())

    def copy(self) -> "AssumedBindings":
        """The same bindings; later changes of one are not seen in the other."""
        copied = AssumedBindings(self._clock)
        copied._by_uid = dict(self._by_uid)
        return copied

    def add(self, pod: PodView, node: str) -> None:
        """Count the pod on the node from now on."""
        now = self._clock()
        for uid in [uid for uid, assumed in self._by_uid.items() if assumed.until <= now]:
            del self._by_uid[uid]
        self._by_uid[pod.uid] = _Assumed(node, pod, now + ASSUMED_SECONDS)

    def remove(self, uid: str) -> None:
        """Forget it: the watch shows the pod bound or gone, or the API server refused."""
        self._by_uid.pop(uid, None)

    def node_of(self, uid: str) -> str:
        """Where the pod is on its way to, or an empty string."""
        assumed = self._by_uid.get(uid)
        return assumed.node if assumed is not None and assumed.until > self._clock() else ""

    def pods_to(self, node: str) -> list[PodView]:
        """The pods that are on their way to the node, as they were before."""
        return [assumed.pod for assumed in self._counting() if assumed.node == node]

    def on(self, node: str) -> Amounts:
        """What is on its way to the node."""
        total = NOTHING
        for assumed in self._counting():
            if assumed.node == node:
                total = total.plus(assumed.pod.requests)
        return total

    def _counting(self) -> Iterator[_Assumed]:
        now = self._clock()
        return (assumed for assumed in self._by_uid.values() if assumed.until > now)


def amounts_of_share(share: NodeShare) -> Amounts:
    """What an allocation gives on one node, as its pods ask for it."""
    return Amounts.of(share, gpus=share.devices or share.gpus)


class Ledger:
    """Free room by node. `allocatable` is the nodes' own, without what pools reserve: that binds the plan only."""

    def __init__(self, allocatable: Mapping[str, Amounts], pods: PodIndex, assumed: AssumedBindings) -> None:
        self._allocatable = allocatable
        self._pods = pods
        self._assumed = assumed

    def knows(self, node: str) -> bool:
        """Whether there is such a node."""
        return node in self._allocatable

    def free(self, node: str) -> Amounts:
        """What is free on the node; negative where it is overdrawn, nothing where it is unknown."""
        held = self._pods.held(node).plus(self._assumed.on(node))
        return self._allocatable.get(node, NOTHING).minus(held)


def held_by_others(
    capacities: Sequence[NodeCapacity], claimed: Set[DeviceKey], jobs: Iterable[JobView]
) -> dict[str, int]:
    """By node, what claims hold beside those of our open runs, in the units of pods' requests: a device that others
    have is not shared with them.

    Devices are compared, and not what labels of claims say: anyone may write these.
    """
    if not claimed:
        return {}
    ours = given_devices(jobs)
    found: dict[str, int] = {}
    for node in capacities:
        taken = sum(one.healthy and one.key in claimed and (node.name, one.uuid) not in ours for one in node.devices)
        if taken:
            found[node.name] = taken * node.replicas
    return found


def given_devices(jobs: Iterable[JobView]) -> set[tuple[str, str]]:
    """Node and UUID of the devices that open runs were given."""
    runs = (open_run(job) for job in jobs)
    return {(share.node, uuid) for run in runs if run is not None for share in run.workers for uuid in share.device_ids}
