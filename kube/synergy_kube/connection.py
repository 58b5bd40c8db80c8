"""The connections to one API server, and how a request gets on them.

The `kubernetes` package keeps the credentials, TLS, proxy and connections, and sends requests. Its models are left out:
they take three times the processor time of a write, and 20 times that of a list (decision 3).
"""

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject

_KEEP_SECONDS = 15.0
"""How long an idle connection is kept: a network may forget one without a word."""
_CONNECTIONS = 64
_LARGE_BODY = 1 << 20
"""Bytes of a request's body from which on it is sent in pieces: in one piece it would hold up the event loop."""
_LEAN = {"trust_env": False}
"""The package looks for a netrc file before each request otherwise, which doubles the time of a write."""


class Connection:
    """Sends requests to the API server of a configuration of the `kubernetes` package."""

    def __init__(self, configuration: Any) -> None:
        configuration.client_session_kwargs = _LEAN
        self._configuration = configuration
        self._base_url = str(configuration.host).rstrip("/")
        self._api = ApiClient(configuration)
        self._rest = _Connections(configuration)
        self._api.rest_client = self._rest

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()  # type: ignore[no-untyped-call]

    async def send(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own, of which the parts matter
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        more_headers: Mapping[str, str] | None = None,
    ) -> aiohttp.ClientResponse:
        """The answer once its head has come; use it as a context manager.

        Raises aiohttp.ClientError or TimeoutError.
        """
        url = f"{self._base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = await self._headers() | dict(more_headers or {})
        if body is not None:
            headers["Content-Type"] = content_type
            return await self._rest.send(method, url, headers, msgspec.json.encode(body), timeout)
        answer = await self._api.call_api(method, url, headers, _request_timeout=timeout)
        response: aiohttp.ClientResponse = answer.response
        return response

    async def bearer_token(self) -> str:
        """The token that requests bear, also one that an exec plugin gave; empty if they bear none."""
        settings = (await self._configuration.auth_settings()).values()
        found = next((str(one["value"] or "") for one in settings if one["key"].lower() == "authorization"), "")
        return found.removeprefix("Bearer ") if found.startswith("Bearer ") else ""

    async def _headers(self) -> dict[str, str]:
        """With the token as it is now: a service account's is replaced every hour."""
        headers = {"Accept": "application/json"}
        for setting in (await self._configuration.auth_settings()).values():
            if setting["value"]:
                headers[setting["key"]] = setting["value"]
        return headers


def without_credentials(url: str) -> Any:
    """Configuration for an API server that asks for none, such as `kubectl proxy`."""
    return Configuration(host=url)


class _Connections(RESTClientObject):
    """The package's connections, kept for a shorter time."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(ssl=self.ssl_context, limit=_CONNECTIONS, keepalive_timeout=_KEEP_SECONDS)

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> aiohttp.ClientResponse:
        """A request with a body that is encoded already, which the package does not take. A large one is read as it is
        sent."""
        if self.pool_manager is None:
            self.pool_manager = self._create_pool_manager()
        return await self.pool_manager.request(
            method,
            url,
            headers=headers,
            data=io.BytesIO(body) if len(body) > _LARGE_BODY else body,
            timeout=timeout,
            proxy=self.proxy,
            proxy_headers=self.proxy_headers,
            server_hostname=self.configuration.tls_server_name or None,
        )
