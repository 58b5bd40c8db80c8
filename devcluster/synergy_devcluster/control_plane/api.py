"""A small client for the cluster's own API server, as administrator: get, server-side apply, delete."""

import http.client
import json
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from synergy_devcluster.errors import DevclusterError

Object = dict[str, Any]
FIELD_MANAGER = "kube-synergy-devcluster"
_COLLECTIONS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
}


class ApiError(DevclusterError):
    """The API server refused a request; ``status`` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """One connection to the API server on loopback, with the administrator's certificate; `with` closes it.

    Not thread-safe.
    """

    def __init__(self, pki: Path, timeout_s: float = 10) -> None:
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        self._timeout = timeout_s
        self._connection: http.client.HTTPSConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str) -> Any:
        """Return the decoded answer of an API path."""
        return json.loads(self._request("GET", path))

    def ready(self) -> bool:
        """Say whether the API server answers that it is ready."""
        try:
            return self._request("GET", "/readyz") == b"ok"
        except (OSError, http.client.HTTPException, DevclusterError):
            return False

    def apply(self, manifest: Object, subresource: str = "") -> None:
        """Create or update a cluster-scoped object (or its status) by server-side apply."""
        path = f"{_COLLECTIONS[manifest['kind']]}/{quote(manifest['metadata']['name'])}"
        target = f"{path}/{subresource}" if subresource else path
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        self._request("PATCH", target + query, manifest, "application/apply-patch+yaml")

    def apply_all(self, manifests: Iterable[Object]) -> None:
        """Apply several objects, in order."""
        for manifest in manifests:
            self.apply(manifest)

    def delete(self, path: str) -> None:
        """Delete the object at an API path; an object that is gone already is no error."""
        try:
            self._request("DELETE", path)
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def _request(self, method: str, path: str, body: Object | None = None, content: str = "application/json") -> bytes:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                "127.0.0.1", 6443, context=self._context, timeout=self._timeout
            )
        data = json.dumps(body).encode() if body is not None else None
        try:
            self._connection.request(method, path, data, {"Content-Type": content, "Accept": "application/json"})
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            self.__exit__()
            raise
        if response.status >= 400:
            raise ApiError(response.status, f"API server: {method} {path}: {response.status} {_reason(answer)}")
        return answer


def _reason(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:200]
