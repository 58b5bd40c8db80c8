"""The objects every devcluster starts with: rights for DNS and kubelet, the storage class and its volumes."""

from pathlib import Path

from synergy_devcluster.control_plane.api import Object
from synergy_devcluster.node.node import REAL_LABEL

STORAGE_CLASS = "standard"
VOLUME_SIZE = "1Gi"


def rights() -> list[Object]:
    """Return the roles that the API server's own bootstrap does not make."""
    dns_rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "system:coredns"},
            "rules": dns_rules,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "system:coredns"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "system:coredns"}],
        },
    ]


def storage_class() -> Object:
    """Return the default storage class, whose volumes are there already and bind at once."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "Immediate",
    }


def volume_name(index: int) -> str:
    """Return the name of a volume, and of its folder."""
    return f"local-{index:03d}"


def volume(volumes: Path, index: int) -> Object:
    """Make a volume's folder below ``volumes``, writable for any user as pods run as non-root; return its object."""
    folder = volumes / volume_name(index)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    # every real node is this machine, so each of them reaches every volume
    on_real_node = {"key": REAL_LABEL, "operator": "Exists"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name(index)},
        "spec": {
            "capacity": {"storage": VOLUME_SIZE},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_real_node]}]}},
        },
    }
