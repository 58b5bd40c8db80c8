"""GPUPools by name, and what of a node's GPUs is theirs. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from synergy_api.amounts import Amounts
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.slices import Device, SliceView, devices_by_node
from synergy_api.devices import class_resource
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.gpu_pool import GPUPoolSpec

DEVICES: Final = "devices"
"""In a Node object that a component has read: the devices of ResourceSlices there (`Device`)."""
_MOST_NUMBER: Final = 1 << 40


@dataclass(frozen=True)
class PoolProblem:
    """One contradiction, in words that say what to change. `pools` are the pools it concerns, possibly none."""

    finding: Finding
    pools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pool:
    """A GPUPool by its name."""

    name: str
    spec: GPUPoolSpec

    @property
    def resource(self) -> str | None:
        """What it calls its GPUs; None for what NVIDIA's device plugin offers."""
        devices = self.spec.devices
        return class_resource(devices.device_class) if devices.device_class else devices.resource

    def devices_of(self, node: Object) -> tuple[Device, ...]:
        """Of the devices that ResourceSlices offer on the node, the pool's."""
        chosen = self.spec.devices
        driver = chosen.driver or chosen.device_class or ""
        offered: Sequence[Device] = node.get(DEVICES) or ()
        return tuple(one for one in offered if one.is_of(driver, chosen.attributes)) if driver else ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels belongs to the pool."""
        return all(labels.get(key) == value for key, value in self.spec.node_selector.items())


def read_pools(objects: Iterable[Object]) -> tuple[list[Pool], list[PoolProblem]]:
    """GPUPool objects as pools in order of name; those that do not parse as problems that name the field."""
    pools: list[Pool] = []
    problems: list[PoolProblem] = []
    for item in objects:
        name = str(item.get("metadata", {}).get("name", ""))
        try:
            pools.append(Pool(name, GPUPoolSpec.model_validate(item.get("spec") or {})))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in ("spec", *first["loc"]))
            finding = say(Reason.INVALID_POOL, problem=f"{field}: {first['msg']}")
            problems.append(PoolProblem(finding, (name,)))
    return sorted(pools, key=lambda pool: pool.name), problems


@dataclass(frozen=True)
class DiscoveryLabels:
    """What GPU feature discovery says of one resource of a node."""

    labels: Mapping[str, str]
    prefix: str

    def key(self, what: str) -> str:
        return f"{self.prefix}.{what}"

    def get(self, what: str) -> str | None:
        return self.labels.get(self.key(what))

    def number(self, what: str) -> int:
        """A label's number, within reason; 0 where there is none."""
        value = self.get(what) or ""
        return min(int(value), _MOST_NUMBER) if value.isdecimal() else 0


def offered_amounts(node: Object, pool: Pool | None, resources: Sequence[str]) -> Amounts:
    """What the node can give to pods, before any reservation, with GPUs in the units that pods ask for.

    Raises ValueError naming the quantity that does not parse.
    """
    try:
        amounts = Amounts.parse(node.get("status", {}).get("allocatable") or {}, resources)
    except ValueError as error:
        raise ValueError(f"status.allocatable: {error}") from None
    devices = pool.devices_of(node) if pool is not None else ()
    if pool is None or pool.spec.devices.device_class is None:
        return amounts
    healthy = sum(device.healthy for device in devices)
    return amounts._replace(gpus=healthy * replicas_of(pool, DiscoveryLabels({}, ""), devices))


def replicas_of(pool: Pool | None, labels: DiscoveryLabels, devices: Sequence[Device]) -> int:
    """What the node is labelled with, as it is written by who offers its devices; else what the pool says. With DRA,
    clients share only devices that several claims may have and a claim can name."""
    if pool is not None and pool.spec.devices.device_class is not None:
        named = bool(devices) and all(device.shared and device.uuid for device in devices)
        return pool.spec.sharing.replicas if named else 1
    told = labels.number("replicas")
    return told or (pool.spec.sharing.replicas if pool is not None else 1)


def with_devices(nodes: Iterable[Object], slices: Iterable[SliceView]) -> list[Object]:
    """The nodes, each with its devices."""
    devices = devices_by_node(slices)
    return [{**node, DEVICES: devices.get(node["metadata"]["name"], ())} if devices else node for node in nodes]
