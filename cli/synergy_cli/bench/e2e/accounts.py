"""Service accounts for the product's processes: as in a cluster they show a token, which the API server checks once in
a while, and not a certificate, whose signature it would check with each request."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from synergy_kube import KubeClient, NotFound, Resource

_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_LASTING_SECONDS = 4 * 3600


def kubeconfig(folder: Path, name: str) -> Path:
    """The path of an account's file."""
    return folder / f"{name}.kubeconfig"


async def account(kube: KubeClient, administrator: Path, namespace: str, name: str, folder: Path) -> None:
    """A new account that may do all that an administrator may, and its kubeconfig."""
    await kube.create(_ACCOUNTS, {"metadata": {"name": name}}, namespace)
    role = {"apiGroup": _BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    await kube.apply(
        _BINDINGS, f"{namespace}-{name}", {"roleRef": role, "subjects": subjects}, manager="kube-synergy-bench"
    )
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _LASTING_SECONDS},
    }
    token = (await kube.create_subresource(_ACCOUNTS, name, "token", request, namespace))["status"]["token"]
    await asyncio.to_thread(_write, kubeconfig(folder, name), administrator, token)


def _write(file: Path, administrator: Path, token: str) -> None:
    config: dict[str, Any] = yaml.safe_load(administrator.read_text(encoding="utf-8"))
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    file.write_text(yaml.safe_dump(config), encoding="utf-8")


async def remove(kube: KubeClient, namespace: str, name: str) -> None:
    """Take the account's rights; the account itself goes with its namespace."""
    with suppress(NotFound):  # where it came to none
        await kube.delete(_BINDINGS, f"{namespace}-{name}")
