"""Where the API server is and how to speak to it: in a pod by its service account, elsewhere by a kubeconfig."""

import os
from pathlib import Path
from typing import Any, Final

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from synergy_kube.errors import NoClusterError

_USUAL: Final = "~/.kube/config"
_IN_POD: Final = "KUBERNETES_SERVICE_HOST"
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where the kubelet writes the namespace of a pod that has a service account."""


def default_namespace(kubeconfig: str | None = None, context: str | None = None) -> str:
    """The namespace that a context of the kubeconfig names, by default the current one; `default` where it names none.
    In a pod without a given file or context: the pod's own.

    Raises NoClusterError if there is no such file or context.
    """
    if kubeconfig is None and context is None and _IN_POD in os.environ:
        try:
            return NAMESPACE_FILE.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise NoClusterError(f"the pod's namespace cannot be read: {error}; name a namespace") from error
    known, current = _contexts(kubeconfig)
    chosen = next((one for one in known if one["name"] == context), None) if context else current
    if chosen is None:
        names = ", ".join(sorted(one["name"] for one in known))
        raise NoClusterError(f"there is no context {context!r}; there are {names}")
    return str(chosen["context"].get("namespace") or "default")


def contexts(kubeconfig: str | None = None) -> list[str]:
    """The names of the kubeconfig's contexts. Raises NoClusterError if there is no such file."""
    return sorted(str(one["name"]) for one in _contexts(kubeconfig)[0])


def _contexts(kubeconfig: str | None) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    file = kubeconfig or os.environ.get("KUBECONFIG")
    if not any(Path(part).expanduser().exists() for part in (file or _USUAL).split(os.pathsep)):
        raise NoClusterError(f"there is no file {file or _USUAL}: set KUBECONFIG to a cluster's file")
    try:
        known, current = config.list_kube_config_contexts(file)  # type: ignore[no-untyped-call]
    except Exception as error:  # as in `load`
        raise NoClusterError(f"{file or 'no KUBECONFIG'}: {error}: set KUBECONFIG to a cluster's file") from error
    return known, current


async def bearer_token(kubeconfig: str | None = None, context: str | None = None) -> str:
    """The token with which a context authenticates, also one that an exec plugin gives; empty where it has none.

    Raises NoClusterError as `load`.
    """
    configuration = await load(kubeconfig, context)
    return str(configuration.api_key.get("BearerToken", "")).removeprefix("Bearer ")


async def load(kubeconfig: str | None = None, context: str | None = None) -> Any:
    """Configuration of the kubernetes package for `kubeconfig`, or for the pod this runs in, or for the user's default.

    Raises NoClusterError if there is none of them, or it cannot be read.
    """
    configuration = Configuration()
    if kubeconfig is None and context is None and _IN_POD in os.environ:
        try:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (config.ConfigException, OSError) as error:
            raise NoClusterError(f"the pod's service account cannot be used: {error}") from error
        return configuration
    file = kubeconfig or os.environ.get("KUBECONFIG")
    try:
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=file,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except Exception as error:  # a file that is none makes the package raise whatever it stumbles over
        raise NoClusterError(f"{file or 'no KUBECONFIG'}: {error}: set KUBECONFIG to a cluster's file") from error
    return configuration
