"""All parts of the dashboard, put together and run."""

import asyncio
import logging
import signal
import time
from typing import Final

from synergy_api.names import PRODUCT_VERSION
from synergy_dashboard.api.app import api_app
from synergy_dashboard.api.parts import ApiParts
from synergy_dashboard.api.people import People
from synergy_dashboard.api.reviews import ClusterReviewer
from synergy_dashboard.api.what_if import Futures
from synergy_dashboard.config import Settings
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.metrics import Metrics
from synergy_dashboard.operations import ops_app
from synergy_dashboard.recorder.follow import Recorder
from synergy_dashboard.serving import Endpoint, Servers, ServerTls
from synergy_dashboard.store.store import Store
from synergy_kube import KubeClient, heap

_LOG = logging.getLogger(__name__)
_LEAVING_SECONDS: Final = 1.0
"""Between being not ready and closing: until then the Service may still send requests here."""


class Dashboard:
    """One replica. Construct it in a running event loop, then `run`."""

    def __init__(self, settings: Settings, client: KubeClient, store: Store) -> None:
        self.live = LiveCluster(client)
        self._recorder = Recorder(client, store, keep_days=settings.keep_days)
        self._tls = ServerTls(settings.tls_dir) if settings.tls_dir is not None else None
        self._stopping = asyncio.Event()
        reviewer = ClusterReviewer(client, time.monotonic)
        people = People(reviewer, lambda: self.live.past_namespaces, settings.proxy_secret)
        parts = ApiParts(self.live, store, client, people, Futures(settings.kubeconfig), PRODUCT_VERSION)
        metrics = Metrics()
        metrics.follow(self.live, self._recorder)
        self.servers = Servers(
            settings.host,
            [
                Endpoint(metrics.counted(api_app(parts)), settings.port, self._tls),
                Endpoint(ops_app(metrics.registry, self._missing), settings.ops_port),
            ],
        )

    def stop(self) -> None:
        """Leave in good order: `run` returns when all is closed."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`. An error that no part can live with ends all parts and is raised."""
        async with asyncio.TaskGroup() as group:
            parts = [
                group.create_task(self.live.run(), name="watches"),
                group.create_task(self._recorder.run(), name="recorder"),
                group.create_task(self._settle(), name="memory"),
            ]
            if self._tls is not None:
                parts.append(group.create_task(self._tls.follow(), name="certificate"))
            serving = group.create_task(self.servers.run(), name="servers")
            await self._stopping.wait()
            await asyncio.sleep(_LEAVING_SECONDS)
            self.servers.stop()
            await serving
            for part in parts:
                part.cancel()

    async def _settle(self) -> None:
        await self.live.wait_synced()
        heap.settle()

    def _missing(self) -> str:
        if self._stopping.is_set():
            return "shutting down"
        return "" if self.live.synced else "the cluster has not been read yet"


async def serve(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    store = Store(settings.database)
    await asyncio.to_thread(store.migrate)
    try:
        async with await KubeClient.connect(settings.kubeconfig) as client:
            dashboard = Dashboard(settings, client, store)
            # rights are asked for by namespace: of deleted jobs too
            dashboard.live.past_namespaces |= await asyncio.to_thread(store.namespaces)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, dashboard.stop)
            _LOG.info("listening on ports %s", dashboard.servers.ports)
            await dashboard.run()
    finally:
        await asyncio.to_thread(store.close)
