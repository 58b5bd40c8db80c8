"""Which processes are ready, asked as the kubelet asks."""

import asyncio
from collections.abc import Mapping

import aiohttp

_PERIOD_SECONDS = 2.0
_TIMEOUT = aiohttp.ClientTimeout(total=1.0)


class Readiness:
    """Asks each of `urls`, by name, every two seconds; ready from the first good answer to so many bad ones in a row:
    three with the chart's probes."""

    def __init__(self, urls: Mapping[str, str], *, failures: int = 3) -> None:
        self._urls = urls
        self._most = failures
        self._failures = dict.fromkeys(urls, failures)
        self._turn = 0

    def ready(self) -> list[str]:
        """Those that are ready, each in front in turn."""
        names = [name for name, failures in self._failures.items() if failures < self._most]
        self._turn += 1
        cut = self._turn % len(names) if names else 0
        return names[cut:] + names[:cut]

    async def run(self) -> None:
        """Ask until cancelled."""
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            while True:
                await asyncio.gather(*(self._ask(session, name, url) for name, url in self._urls.items()))
                await asyncio.sleep(_PERIOD_SECONDS)

    async def _ask(self, session: aiohttp.ClientSession, name: str, url: str) -> None:
        try:
            async with session.get(url) as response:
                good = response.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            good = False
        self._failures[name] = 0 if good else self._failures[name] + 1
