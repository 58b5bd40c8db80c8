"""A service account with given rights, for running a component as it would run in the cluster."""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from synergy_kube import KubeClient, Resource
from synergy_kube.resources import NAMESPACES

_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


@asynccontextmanager
async def kubeconfig_of(
    kube: KubeClient, administrator: Path, rules: Sequence[Any], folder: Path
) -> AsyncIterator[Path]:
    """A kubeconfig of a new account that may do what `rules` say and nothing else; the account goes afterwards."""
    name = f"rights-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    await kube.create(_ACCOUNTS, {"metadata": {"name": name}}, name)
    await kube.create(_ROLES, {"metadata": {"name": name}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": name}
    role = {"apiGroup": _ROLES.group, "kind": "ClusterRole", "name": name}
    await kube.create(_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token = (await kube.create_subresource(_ACCOUNTS, name, "token", request, name))["status"]["token"]
    try:
        yield with_token(administrator, token, folder / "kubeconfig")
    finally:
        await kube.delete(_BINDINGS, name)
        await kube.delete(_ROLES, name)
        await kube.delete(NAMESPACES, name)


@asynccontextmanager
async def allowed_to_read_jobs(kube: KubeClient, namespace: str) -> AsyncIterator[None]:
    """Meanwhile the namespace's default account may get TrainingJobs everywhere."""
    name = f"reader-{namespace}"
    rules = [{"apiGroups": ["kube-synergy.dev"], "resources": ["trainingjobs"], "verbs": ["get"]}]
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    role = {"apiGroup": _ROLES.group, "kind": "ClusterRole", "name": name}
    await kube.create(_ROLES, {"metadata": {"name": name}, "rules": rules})
    await kube.create(_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
    try:
        yield
    finally:
        await kube.delete(_BINDINGS, name)
        await kube.delete(_ROLES, name)


def with_token(administrator: Path, token: str, file: Path) -> Path:
    """The administrator's kubeconfig with this token in place of his own credentials, as `file`."""
    config = yaml.safe_load(administrator.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    file.write_text(yaml.safe_dump(config))
    return file


def in_namespace(kubeconfig: Path, namespace: str, file: Path) -> Path:
    """The same kubeconfig with this namespace as that of its contexts, as `file`."""
    config = yaml.safe_load(kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    file.write_text(yaml.safe_dump(config))
    return file
