"""Fake nodes: kwok's command line, the stages that move their pods, and the node objects."""

import math
from importlib.resources import files

from synergy_devcluster import network
from synergy_devcluster.control_plane.api import Object
from synergy_devcluster.control_plane.command_lines import Argv, Identities
from synergy_devcluster.gpu_plugin.gpu_types import node_labels
from synergy_devcluster.options import FakeNodes
from synergy_devcluster.paths import Paths

NODE_ANNOTATION = "kwok.x-k8s.io/node"
FAIL_ANNOTATION = "kwok.kube-synergy.dev/fail"
PODS_PER_NODE = 110


_RENEWALS_PER_SECOND = 40
_RENEWED_IN = 4
"""A node's lease is renewed after this part of its duration."""
_LEAST_LEASE_S, _MOST_LEASE_S = 10, 120
_GRACE_S = 50


def lease_seconds(nodes: int) -> int:
    """How long the leases of so many nodes last: they are renewed 40 times a second at most.

    After a restart kwok waits for its own old leases, so the few nodes of a small cluster have short ones. Those of
    1,000 nodes, at 10 s, would be 400 writes a second, for which two cores have no time.
    """
    return min(max(_LEAST_LEASE_S, math.ceil(_RENEWED_IN * nodes / _RENEWALS_PER_SECOND)), _MOST_LEASE_S)


def grace_seconds(nodes: int) -> int:
    """After how long without a renewal the control plane holds a node for lost: Kubernetes' own 50 s, or more where
    leases last longer. kwok renews four at a time, which under load are 15 a second: nodes would be lost at random."""
    return max(_GRACE_S, 2 * lease_seconds(nodes))


def kwok(program: str, ids: Identities, paths: Paths, nodes: int) -> Argv:
    """kwok for annotated nodes alone, some `nodes`, with pod addresses that are routed to the bridge and die there."""
    stages = paths.config / "kwok-stages.yaml"
    stages.write_text(files(__package__).joinpath("kwok-stages.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    return [
        program,
        f"--config={stages}",
        f"--kubeconfig={ids.kubeconfigs['kwok']}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={NODE_ANNOTATION}=fake",
        f"--cidr={network.FAKE_PODS}",
        f"--node-ip={network.NODE_ADDRESS}",
        "--node-port=10247",
        f"--server-address={network.NODE_ADDRESS}:10247",
        f"--tls-cert-file={ids.kwok_server.certificate}",
        f"--tls-private-key-file={ids.kwok_server.key}",
        f"--node-lease-duration-seconds={lease_seconds(nodes)}",
    ]


def node_names(group: FakeNodes) -> list[str]:
    """Return the names of a group's nodes, for example ``fake-v100-007``."""
    width = max(3, len(str(group.nodes - 1)))
    stem = "".join(letter if letter.isalnum() else "-" for letter in group.type_name.lower())
    return [f"fake-{stem}-{index:0{width}d}" for index in range(group.nodes)]


def nodes(group: FakeNodes) -> list[Object]:
    """Return the node objects of a group, with capacity in their status."""
    capacity = {
        "cpu": str(group.cpus),
        "memory": str(group.memory_bytes),
        "pods": str(PODS_PER_NODE),
        "ephemeral-storage": str(2**40),
    }
    if group.gpus:
        capacity["nvidia.com/gpu"] = str(group.gpus)
    return [_node(name, group, capacity) for name in node_names(group)]


def _node(name: str, group: FakeNodes, capacity: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {NODE_ANNOTATION: "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "type": "kwok",
                **node_labels(group.gpu(), group.gpus),
            },
        },
        "status": {"capacity": capacity, "allocatable": capacity},
    }
