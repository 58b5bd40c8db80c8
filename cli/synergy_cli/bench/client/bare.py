"""The least that a write takes with aiohttp and msgspec: one session, one request, one answer."""

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from synergy_kube import ApiError


class Bare:
    """A session with the credentials of a configuration of the `kubernetes` package."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        query: Mapping[str, str],
        content_type: str,
    ) -> object:
        """The decoded answer. Raises ApiError, aiohttp.ClientError or TimeoutError."""
        headers = {"Accept": "application/json", "Content-Type": content_type}
        for setting in (await self._configuration.auth_settings()).values():
            if setting["value"]:
                headers[setting["key"]] = setting["value"]
        url = self._configuration.host + path
        data = msgspec.json.encode(body)
        async with self._session.request(method, url, params=query, data=data, headers=headers) as response:
            answer = await response.read()
        if response.status >= 400:
            raise ApiError(response.status, "", answer.decode(errors="replace"))
        return msgspec.json.decode(answer)
