"""Where the API server is and how to speak to it: in a pod by its service account, elsewhere by a kubeconfig."""

import os
from typing import Any

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from synergy_kube.errors import NoClusterError


async def load(kubeconfig: str | None = None, context: str | None = None) -> Any:
    """Configuration of the kubernetes package for `kubeconfig`, or for the pod this runs in, or for the user's default.

    Raises NoClusterError if there is none of them, or it cannot be read.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=kubeconfig or os.environ.get("KUBECONFIG"),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
    except Exception as error:  # whatever the package stumbles over in the file
        raise NoClusterError(f"{error}: set KUBECONFIG to the kubeconfig file of a cluster") from error
    return configuration
