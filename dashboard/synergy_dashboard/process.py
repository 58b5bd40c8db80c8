"""All parts of the dashboard, put together and run."""

import asyncio
import logging
import time
from typing import Final

from synergy_api.names import PRODUCT_VERSION
from synergy_dashboard.api.app import api_app
from synergy_dashboard.api.job.events import JobEvents
from synergy_dashboard.api.parts import ApiParts
from synergy_dashboard.api.people import People
from synergy_dashboard.api.reviews import ClusterReviewer
from synergy_dashboard.api.what_if import Futures
from synergy_dashboard.config import Settings
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.past_namespaces import PastNamespaces
from synergy_dashboard.metrics import Metrics
from synergy_dashboard.recorder.follow import Recorder
from synergy_dashboard.store.store import Store
from synergy_kube import KubeClient
from synergy_service import heap
from synergy_service.operations import ops_app
from synergy_service.program import call_on_signals, run_parts
from synergy_service.servers import Endpoint, Servers
from synergy_service.tls import ServerTls, TlsFiles, follow

_LOG = logging.getLogger(__name__)
_LEAVING_SECONDS: Final = 1.0
_DRAIN_SECONDS: Final = 2
"""Short, because a page reads the stream of changes for as long as the server lets it."""
_MOST_CONNECTIONS: Final = 1_000
"""All may come from one address, that of a proxy."""


class Dashboard:
    """One replica. Construct it in a running event loop, then `run`."""

    def __init__(self, settings: Settings, client: KubeClient, store: Store) -> None:
        self.live = LiveCluster(client)
        self.namespaces = PastNamespaces(self.live, store.namespaces)
        self._recorder = Recorder(client, store, keep_days=settings.keep_days)
        self._files = TlsFiles(settings.tls_dir) if settings.tls_dir is not None else None
        self._tls = ServerTls(self._files, client_certificate=False) if self._files is not None else None
        self._stopping = asyncio.Event()
        reviewer = ClusterReviewer(client, time.monotonic)
        people = People(reviewer, lambda: self.live.past_namespaces, settings.proxy_secret)
        events = JobEvents(client, time.monotonic)
        parts = ApiParts(self.live, store, client, people, Futures(settings.kubeconfig), events, PRODUCT_VERSION)
        metrics = Metrics()
        metrics.follow(self.live, self._recorder)
        self.servers = Servers(
            settings.host,
            [
                Endpoint(
                    metrics.counted(api_app(parts)),
                    settings.port,
                    self._tls.context if self._tls is not None else None,
                    most=_MOST_CONNECTIONS,
                    per_address=_MOST_CONNECTIONS,
                ),
                Endpoint(ops_app(metrics.registry, self._missing), settings.ops_port),
            ],
            _DRAIN_SECONDS,
        )

    def stop(self) -> None:
        """Begin to stop: `run` returns when everything is closed."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`. An error that a part raises ends all parts."""
        parts = {
            "watches": self.live.run(),
            "recorder": self._recorder.run(),
            "namespaces": self.namespaces.run(),
            "memory": self._settle(),
        }
        if self._files is not None and self._tls is not None:
            parts["certificate"] = follow(self._files, [self._tls])
        await run_parts(parts, self.servers, self._stopping, leaving_s=_LEAVING_SECONDS)

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
            await dashboard.namespaces.read()
            call_on_signals(dashboard.stop)
            _LOG.info("listening on ports %s", dashboard.servers.ports)
            await dashboard.run()
    finally:
        await asyncio.to_thread(store.close)
