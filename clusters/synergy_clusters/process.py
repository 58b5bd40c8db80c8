"""All parts of the controller, put together and run."""

import asyncio
import logging
from typing import Final

import aiohttp

from synergy_api.generation.crd import schema_of
from synergy_clusters.actions import Actions
from synergy_clusters.claims.fence import Fence
from synergy_clusters.config import Settings
from synergy_clusters.dispatcher import Dispatcher
from synergy_clusters.metrics import Metrics
from synergy_clusters.worker_clusters.cluster_set import ClusterSet
from synergy_clusters.worker_clusters.workers import Workers
from synergy_kube import ApiError, KubeClient
from synergy_kube.resources import NAMESPACES, TRAINING_JOBS
from synergy_kube.served_schema import SchemaWatch
from synergy_service.operations import ops_app
from synergy_service.program import call_on_signals, run_parts
from synergy_service.servers import Endpoint, Servers

_LOG = logging.getLogger(__name__)
_IDENTITY: Final = "kube-system"
"""The namespace whose uid identifies a cluster."""
_AGAIN_SECONDS: Final = 2.0


class Controller:
    """The process. `hub` identifies the hub cluster. Construct it in a running event loop, then `run`."""

    def __init__(self, settings: Settings, client: KubeClient, hub: str) -> None:
        self._stopping = asyncio.Event()
        self._schemas = SchemaWatch(client, {TRAINING_JOBS: schema_of("TrainingJob", "status")}, "the controller")
        workers = Workers(
            ClusterSet(settings.kubeconfigs),
            hub,
            lambda name, key: self.dispatcher.cluster_changed(name, key),  # noqa: PLW0108 - it does not exist yet
        )
        fence = Fence(client, hub, settings.namespace, lambda: workers.all, lambda: workers.unconnected)
        self.dispatcher = Dispatcher(
            client,
            Actions(client, hub, fence),
            workers,
            fence,
            away_s=settings.away_s,
            reconsider_s=settings.reconsider_s,
        )
        metrics = Metrics(lambda: self.dispatcher.jobs, lambda: workers.all, lambda: bool(fence.refused))
        self.servers = Servers(settings.host, [Endpoint(ops_app(metrics.registry, self._missing), settings.ops_port)])

    def stop(self) -> None:
        """Begin to stop: `run` returns when everything is closed."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`. An error that a part raises ends all parts."""
        await self._schemas.look()
        parts = {"jobs": self.dispatcher.run(), "schemas": self._schemas.run()}
        await run_parts(parts, self.servers, self._stopping, leaving_s=0.0)

    def _missing(self) -> str:
        if self._stopping.is_set():
            return "shutting down"
        return "" if self.dispatcher.synced else "the hub's jobs have not been read yet"


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT."""
    async with await KubeClient.connect(settings.kubeconfig) as client:
        controller = Controller(settings, client, await _identity(client))
        call_on_signals(controller.stop)
        _LOG.info("metrics and probes on port %s", controller.servers.ports)
        await controller.run()


async def _identity(client: KubeClient) -> str:
    """What identifies the hub: no other cluster has it, and it does not change."""
    while True:
        try:
            return str((await client.get(NAMESPACES, _IDENTITY))["metadata"]["uid"])
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            _LOG.warning("the hub's API server: %s", error)
            await asyncio.sleep(_AGAIN_SECONDS)
