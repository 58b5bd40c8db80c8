"""A real Kubernetes on one plain Linux machine, without Docker.

``up`` starts real etcd, API server, controllers, scheduler, kubelet, containerd, kube-proxy and CoreDNS,
with fake NVIDIA GPUs on the one real node and any number of fake nodes by kwok; ``down`` ends and removes
exactly what ``up`` started and made.
"""

from synergy_devcluster.cluster import Cluster, connect, down, prepare, programs, up
from synergy_devcluster.control_plane.components import Component
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.images.base import BASE_IMAGE
from synergy_devcluster.images.build import build_image
from synergy_devcluster.options import FakeNodes, Options, parse_fake_nodes
from synergy_devcluster.paths import Paths
from synergy_devcluster.run_with import alone, at_hand
from synergy_devcluster.status_report import Status, status

__all__ = [
    "BASE_IMAGE",
    "BadInputError",
    "Cluster",
    "Component",
    "DevclusterError",
    "FakeNodes",
    "Options",
    "Paths",
    "Status",
    "alone",
    "at_hand",
    "build_image",
    "connect",
    "down",
    "parse_fake_nodes",
    "prepare",
    "programs",
    "status",
    "up",
]
