"""The real nodes: their names, addresses, folders and sockets. Each is a kubelet with a containerd of its own."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from synergy_devcluster import network
from synergy_devcluster.paths import Paths

REAL_NODE = "ksdev-real"
_FIRST_HEALTH_PORT = 10250


@dataclass(frozen=True)
class RealNode:
    """One real node of a devcluster; ``index`` counts from 0."""

    paths: Paths
    index: int

    @property
    def suffix(self) -> str:
        """What the names of this node and of its components end in: nothing for the first node, then -2, -3."""
        return f"-{self.index + 1}" if self.index else ""

    @property
    def name(self) -> str:
        """The node's name in Kubernetes."""
        return REAL_NODE + self.suffix

    @property
    def address(self) -> str:
        """The node's address on the bridge, where its kubelet listens."""
        return str(ipaddress.ip_address(network.NODE_ADDRESS) + self.index)

    @property
    def pod_addresses(self) -> tuple[str, str]:
        """The first and the last address of its pods."""
        first = ipaddress.ip_network(network.POD_RANGE).network_address + 256 * (self.index + 1)
        return str(first + 1), str(first + 254)

    @property
    def health_port(self) -> int:
        """The port of its kubelet's health endpoint on loopback."""
        return _FIRST_HEALTH_PORT + self.index if self.index else 10248

    @property
    def root(self) -> Path:
        """Everything the node writes."""
        return self.paths.state / f"node{self.suffix}"

    @property
    def cgroup(self) -> str:
        """The control group of its pods."""
        return f"{self.paths.cgroup}/{self.name}"

    @property
    def containerd_socket(self) -> Path:
        """containerd's API, reachable from outside the node's mount namespace."""
        return self.paths.run / f"containerd{self.suffix}.sock"

    @property
    def gpu_health(self) -> Path:
        """The file that lists the UUIDs of unhealthy GPUs."""
        return self.root / "gpus" / "unhealthy.json"

    @property
    def gpu_clients(self) -> Path:
        """The folder that the clients of its GPUs see."""
        return self.root / "gpus" / "clients"

    @property
    def dra(self) -> Path:
        """The folder of its DRA driver."""
        return self.root / "dra"

    @property
    def edits(self) -> Path:
        """The folder where its container runtime looks for edits of containers."""
        return self.dra / "edits"

    def private(self, folder: str) -> Path:
        """Return the folder behind one of the fixed folders of kubelet and containerd."""
        return self.root / "fixed" / folder.strip("/").replace("/", "-")


def real_nodes(paths: Paths, count: int) -> tuple[RealNode, ...]:
    """Return the real nodes of a devcluster."""
    return tuple(RealNode(paths, index) for index in range(count))
