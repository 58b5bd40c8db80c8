"""The one asynchronous client of the API server: raw JSON in and out, decoded by msgspec.

The `kubernetes` package finds the credentials; requests go through aiohttp directly, because its generated models
decode slowly and take most of a controller's memory.
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
