"""`GET /metrics` over plain HTTP on a port of its own: kopf's server for the liveness probe serves nothing else."""

import asyncio
import logging

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from synergy_operator.edge.metrics import Metrics

_LOG = logging.getLogger(__name__)


class MetricsServer:
    """Serves the metrics between `start` and `stop`."""

    def __init__(self, metrics: Metrics, port: int, host: str = "0.0.0.0") -> None:  # noqa: S104 - Prometheus reads it
        self._metrics = metrics
        self._address = (host, port)
        app = web.Application()
        app.router.add_get("/metrics", self._show)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> None:
        """Listen; port 0 means any free port. Raises OSError that names the variable if the port is taken."""
        await self._runner.setup()
        host, port = self._address
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            problem = f"SYNERGY_METRICS_PORT: cannot listen on port {port}: {error.strerror}"
            raise OSError(error.errno, problem) from error
        _LOG.info("metrics on port %d", self.port)

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Close the port."""
        await self._runner.cleanup()

    async def _show(self, _: web.Request) -> web.Response:
        # in a thread, because it takes some milliseconds
        text = await asyncio.to_thread(generate_latest, self._metrics.registry)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})
