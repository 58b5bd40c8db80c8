"""The extender's servers over real sockets, above an API server that is not there."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_devcluster.control_plane.pki import Authority, KeyPair
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.fresh import FreshLook
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.service import LeaseService
from synergy_extender.leases.tokens import Reviewer
from synergy_extender.metrics import Metrics
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.rounds import Rounds
from synergy_extender.verbs.bind import Binder
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.web.api_app import ApiParts
from synergy_extender.web.scheduler_app import SchedulerVerbs
from synergy_kube import KubeClient
from synergy_service.servers import Endpoint, Servers

NAMES = ("localhost", "127.0.0.1")


@asynccontextmanager
async def running(*endpoints: Endpoint) -> AsyncIterator[list[int]]:
    """Serve these on loopback; the ports."""
    servers = Servers("127.0.0.1", endpoints)
    task = asyncio.create_task(servers.run())
    try:
        yield servers.ports
    finally:
        servers.stop()
        await task


def trusting(authority: Authority, client: KeyPair | None = None) -> ssl.SSLContext:
    """A client's TLS that trusts the authority and shows the certificate."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    return context


class Parts:
    """All that answers, over an API server that is not there."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.metrics = Metrics()
        self.cache = ClusterCache(client, lambda: None)
        placements = ClusterPlacements(client, self.cache)
        binder = Binder(placements, self.cache.assumed)
        self.verbs = SchedulerVerbs(placements, binder, self.metrics, lambda: self.cache.synced)
        reviewer = Reviewer(client, time.monotonic)
        writer = ProgressWriter(client, self.cache.observe)
        fresh = FreshLook(client, self.cache)
        rounds = Rounds(20)
        leases = LeaseService(self.cache, fresh, reviewer, writer, self.metrics, rounds=lambda: rounds, clock=time.time)
        self.desk = ApiParts(
            self.cache,
            leases,
            reviewer,
            self.metrics,
            policy=lambda: PolicyInForce(SchedulingPolicySpec(round_seconds=20)),
            last_plan=lambda: None,
            leader=lambda: "extender-1",
            clock=time.time,
        )


@asynccontextmanager
async def parts_alone() -> AsyncIterator[Parts]:
    """Parts whose API server refuses every connection."""
    async with KubeClient.at("http://127.0.0.1:1") as client:
        yield Parts(client)
