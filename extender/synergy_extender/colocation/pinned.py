"""Which devices a run gets on nodes with DRA. Its claims name them, so partners share a GPU in any order of binding."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.cluster.slices import Device
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.quantity import byte_count
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key
from synergy_extender.colocation.order import Group, group_of


class PinnedDevices:
    """The devices that runs may be given at one moment. `granted` are the places that jobs hold now, leaving ones
    included."""

    def __init__(self, state: ClusterState, granted: Mapping[Key, Allocation]) -> None:
        self._nodes = {node.name: node for node in state.capacities if any(one.uuid for one in node.devices)}
        self._claimed = state.claimed
        self._given: dict[tuple[str, str], set[Group]] = {}
        for job, allocation in granted.items() if self._nodes else ():
            self._note(job, allocation)

    def pin(self, job: Key, allocation: Allocation) -> Allocation | None:
        """The allocation with devices; None if a node has not enough that are free. Nodes without DRA stay as they
        are."""
        if not any(share.node in self._nodes for share in allocation.workers):
            return allocation
        group = group_of(job, allocation)
        shares = [self._pinned(share, group) for share in allocation.workers]
        if any(share is None for share in shares):
            return None
        return allocation.model_copy(update={"workers": shares})

    def take(self, job: Key, allocation: Allocation) -> None:
        """Take note that the run has these devices."""
        self._note(job, allocation)

    def _note(self, job: Key, allocation: Allocation) -> None:
        for share in allocation.workers:
            for uuid in share.device_ids:
                self._given.setdefault((share.node, uuid), set()).add(group_of(job, allocation))

    def _pinned(self, share: NodeShare, group: Group) -> NodeShare | None:
        node = self._nodes.get(share.node)
        if node is None or share.device_ids:
            return share
        chosen = self._of_partners(node, group) or self._free(node)[: share.gpus]
        if len(chosen) != share.gpus:
            return None
        return share.model_copy(
            update={"device_ids": [device.uuid for device in chosen], "capacity": _capacity(share, node, chosen)}
        )

    def _of_partners(self, node: NodeCapacity, group: Group) -> list[Device]:
        """The device that the job's partners have been given already."""
        if len(group) == 1:
            return []
        return [one for one in node.devices if self._given.get((node.name, one.uuid)) == {group}]

    def _free(self, node: NodeCapacity) -> list[Device]:
        return [
            one
            for one in node.devices
            if one.healthy and one.uuid and one.key not in self._claimed and (node.name, one.uuid) not in self._given
        ]


def _capacity(share: NodeShare, node: NodeCapacity, chosen: Sequence[Device]) -> dict[str, str]:
    """Of devices that several claims may have, the part that the job was given of each: all of it where it is alone, so
    that no claim of others joins it."""
    if not all(device.shared for device in chosen):
        return {}
    parts = (share.devices or node.replicas * share.gpus) // share.gpus
    least: dict[str, int] = {}
    for device in chosen:
        for name, value in _read(device):
            least[name] = min(value, least.get(name, value))
    return {name: str(value * parts // node.replicas) for name, value in sorted(least.items())}


def _read(device: Device) -> Iterable[tuple[str, int]]:
    for name, value in device.capacity.items():
        with suppress(ValueError):  # a fraction of one thing is not shared out
            yield name, byte_count(value)
