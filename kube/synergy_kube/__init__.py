"""The one asynchronous client of the API server: plain JSON objects in and out.

The `kubernetes` package finds the credentials, keeps the connections and sends requests. Answers are decoded by
msgspec, because the package's generated models decode slowly and take much memory (decision 3).
"""

from synergy_kube.client import KubeClient
from synergy_kube.errors import ApiError, Conflict, Gone, NoClusterError, NotFound
from synergy_kube.reflector import Change, Reflector
from synergy_kube.resources import Resource

__all__ = [
    "ApiError",
    "Change",
    "Conflict",
    "Gone",
    "KubeClient",
    "NoClusterError",
    "NotFound",
    "Reflector",
    "Resource",
]
