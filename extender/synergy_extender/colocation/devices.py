"""What a job asks the device plugin for on a node with shared GPUs.

The jobs of a GPU together request all of its devices, and leave none for other pods: a job alone for all of them, of
several each for one, the first by name for the rest.
"""

from collections.abc import Mapping

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.devices import own_resource
from synergy_api.names import RESOURCE_GPU
from synergy_api.parts.allocation import NodeShare
from synergy_core.model import snapshot as core
from synergy_extender.cluster.dimensions import amounts_of_place

Capacities = Mapping[str, NodeCapacity]
"""Nodes by name."""


def shares_of(place: core.Allocation, capacities: Capacities) -> list[NodeShare]:
    """A plan's shares as the custom resource has them, in order of node."""
    devices = devices_of(place, capacities)
    return [
        NodeShare(
            node=share.node,
            gpus=share.gpus,
            devices=devices[share.node][1],
            resource=own_resource(_resource(capacities.get(share.node))),
            **amounts_of_place(share).fields,
        )
        for share in sorted(place.workers, key=lambda share: share.node)
    ]


def devices_of(place: core.Allocation, capacities: Capacities) -> dict[str, tuple[int, int | None]]:
    """GPUs, and devices where these are shared, by node."""
    return {
        share.node: (share.gpus, _devices(place, share.gpus, capacities.get(share.node))) for share in place.workers
    }


def _devices(place: core.Allocation, gpus: int, capacity: NodeCapacity | None) -> int | None:
    if capacity is None or capacity.replicas == 1:
        return None
    if not place.partners:
        return gpus * capacity.devices_per_gpu
    if place.job > min(place.partners):
        return 1
    return max(1, capacity.devices_per_gpu - len(place.partners))


def _resource(capacity: NodeCapacity | None) -> str:
    return RESOURCE_GPU if capacity is None else capacity.resource


def is_usual(node: str, capacities: Capacities) -> bool:
    """Whether pods ask for whole GPUs there, by NVIDIA's usual name."""
    capacity = capacities.get(node)
    return capacity is None or (capacity.replicas == 1 and capacity.resource == RESOURCE_GPU)
