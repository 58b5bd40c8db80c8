"""The devices of DRA: what ResourceSlices offer on nodes, and what ResourceClaims hold of it. Pure."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from synergy_api.cluster.nodes import Object
from synergy_api.quantity import byte_count

_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")
_UUID: Final = "uuid"


class DeviceKey(NamedTuple):
    """What identifies a device in a cluster."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True, slots=True)
class Device:
    """One device of one node."""

    key: DeviceKey
    node: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Those that are texts."""
    capacity: Mapping[str, str] = field(default_factory=dict)
    healthy: bool = True
    """False if a taint of the device keeps new claims away."""
    shared: bool = False
    """Several claims may have it at the same time."""

    @property
    def uuid(self) -> str:
        """What a claim can select it by; empty if its driver does not say."""
        return self.attributes.get(_UUID, "")

    @property
    def gpu_memory_bytes(self) -> int:
        """Its memory; 0 if its driver does not say."""
        said = self.capacity.get("memory") or self.capacity.get(f"{self.key.driver}/memory") or "0"
        with suppress(ValueError):
            return byte_count(said)
        return 0

    def is_of(self, driver: str, attributes: Mapping[str, str]) -> bool:
        """Whether the driver offers it and it has these attributes."""
        return self.key.driver == driver and all(self.attributes.get(name) == v for name, v in attributes.items())


@dataclass(frozen=True, slots=True)
class SliceView:
    """One ResourceSlice."""

    driver: str
    pool: str
    generation: int
    devices: tuple[Device, ...]


def read_slice(item: Object) -> SliceView:
    """The view of a ResourceSlice object. Devices that belong to no single node are left out."""
    spec = item.get("spec") or {}
    pool = spec.get("pool") or {}
    driver, name, node = str(spec.get("driver", "")), str(pool.get("name", "")), str(spec.get("nodeName") or "")
    devices = (_device(one, driver, name, node) for one in spec.get("devices") or [])
    return SliceView(driver, name, int(pool.get("generation", 0)), tuple(one for one in devices if one.node))


def _device(item: Object, driver: str, pool: str, node: str) -> Device:
    attributes = {
        name.removeprefix(f"{driver}/"): str(value["string"])
        for name, value in (item.get("attributes") or {}).items()
        if "string" in value
    }
    return Device(
        key=DeviceKey(driver, pool, str(item["name"])),
        node=str(item.get("nodeName") or node),
        attributes=attributes,
        capacity={name: str(one["value"]) for name, one in (item.get("capacity") or {}).items()},
        healthy=not any(taint.get("effect") in _KEEPS_AWAY for taint in item.get("taints") or []),
        shared=bool(item.get("allowMultipleAllocations")),
    )


def devices_by_node(slices: Iterable[SliceView]) -> dict[str, tuple[Device, ...]]:
    """The devices of each node, in order of name; of a pool only the newest generation counts."""
    listed = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for one in listed:
        newest[one.driver, one.pool] = max(one.generation, newest.get((one.driver, one.pool), 0))
    found: dict[str, list[Device]] = {}
    for one in listed:
        if one.generation == newest[one.driver, one.pool]:
            for device in one.devices:
                found.setdefault(device.node, []).append(device)
    return {node: tuple(sorted(devices, key=lambda device: device.key)) for node, devices in found.items()}


def held_devices(claim: Object) -> tuple[DeviceKey, ...]:
    """The devices that a ResourceClaim has been allocated. Administrative access holds none."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results: list[Mapping[str, Any]] = (allocation.get("devices") or {}).get("results") or []
    return tuple(
        DeviceKey(str(one["driver"]), str(one["pool"]), str(one["device"]))
        for one in results
        if not one.get("adminAccess")
    )
