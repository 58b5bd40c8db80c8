"""The extender's Service: which replicas are ready, asked as the kubelet asks."""

import asyncio
from collections.abc import Mapping

import aiohttp

_PERIOD_SECONDS = 2.0
_FAILURES = 3
_TIMEOUT = aiohttp.ClientTimeout(total=1.0)


class Readiness:
    """Asks each replica's `/readyz` every two seconds; ready from the first good answer to the third bad one in a row,
    as with the chart's probe. `ports` are the replicas' ops ports by name."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports
        self._failures = dict.fromkeys(ports, _FAILURES)
        self._turn = 0

    def ready(self) -> list[str]:
        """The replicas that are ready, each in front in turn."""
        names = [name for name, failures in self._failures.items() if failures < _FAILURES]
        self._turn += 1
        cut = self._turn % len(names) if names else 0
        return names[cut:] + names[:cut]

    async def run(self) -> None:
        """Ask until cancelled."""
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            while True:
                await asyncio.gather(*(self._ask(session, name, port) for name, port in self._ports.items()))
                await asyncio.sleep(_PERIOD_SECONDS)

    async def _ask(self, session: aiohttp.ClientSession, name: str, port: int) -> None:
        try:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as response:
                good = response.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            good = False
        self._failures[name] = 0 if good else self._failures[name] + 1
