"""All parts of the extender, put together and run."""

import asyncio
import logging
import os
import time
from contextlib import suppress

from synergy_api.generation.crd import schema_of
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.fresh import FreshLook
from synergy_extender.cluster.node_requests.watch import NodeRequests
from synergy_extender.config import Settings
from synergy_extender.failures import CALL_FAILED
from synergy_extender.forecasts.worker import ForecastWorker
from synergy_extender.leader import LeaderElection
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.service import LeaseService
from synergy_extender.leases.tokens import Reviewer
from synergy_extender.metrics import Metrics
from synergy_extender.planner.worker import PlanWorker
from synergy_extender.planning.forecasting import TIMEOUT_S, ForecastLoop, Forecasts
from synergy_extender.planning.loop import PlanningLoop
from synergy_extender.verbs.bind import Binder
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.web.api_app import ApiParts, api_app
from synergy_extender.web.scheduler_app import SchedulerVerbs, scheduler_app
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, SCHEDULING_POLICIES, TENANTS, TRAINING_JOBS
from synergy_kube.served_schema import SchemaWatch
from synergy_kube.steady_clock import SteadyClock
from synergy_kube.writes import Served
from synergy_service import heap
from synergy_service.operations import ops_app
from synergy_service.program import call_on_signals, run_parts
from synergy_service.servers import Endpoint, Servers
from synergy_service.tls import ServerTls, TlsFiles, follow
from synergy_service.tracing import tracing

_LOG = logging.getLogger(__name__)
LEASE_NAME = "kube-synergy-extender"
WRITTEN = {item: schema_of(item.kind, "status") for item in (TRAINING_JOBS, GPU_POOLS, SCHEDULING_POLICIES, TENANTS)}
"""What the extender writes of custom resources."""
ESTIMATED_START = ("status", "queue", "estimatedStart")


class Extender:
    """One replica. Construct it in a running event loop, then `run`."""

    def __init__(self, settings: Settings, client: KubeClient) -> None:
        clock = SteadyClock()
        self.metrics = Metrics()
        requests = NodeRequests(settings.pod_namespace) if settings.autoscaling else None
        self.cache = ClusterCache(client, self._notify, settings.priority_class, requests)
        self._schemas = SchemaWatch(client, WRITTEN, "the extender", self._schemas_changed)
        identity = f"{settings.pod_name}_{os.urandom(4).hex()}"
        place = (settings.pod_namespace, LEASE_NAME)
        self.election = LeaderElection(client, place, identity, settings.leader, on_change=self._lead_changed)
        self._forecasts = Forecasts(self.metrics, enabled=settings.forecasts)
        self.loop = PlanningLoop(
            client,
            self.cache,
            PlanWorker(settings.plan_timeout_s),
            self.metrics,
            lead=self.election,
            clock=clock,
            forecasts=self._forecasts,
        )
        self._forecasting = ForecastLoop(
            self.cache,
            ForecastWorker(TIMEOUT_S),
            self._forecasts,
            self.metrics,
            lead=self.election,
            policy=lambda: self.loop.policy,
            clock=clock,
            notify=self._notify,
        )
        self._files = TlsFiles(settings.tls_dir)
        self._tls = [ServerTls(self._files, client_certificate=needed) for needed in (True, False)]
        self._stopping = asyncio.Event()
        placements = ClusterPlacements(client, self.cache)
        verbs = SchedulerVerbs(
            placements, Binder(placements, self.cache.assumed), self.metrics, lambda: self.cache.synced
        )
        reviewer = Reviewer(client, time.monotonic)
        self._leases = LeaseService(
            self.cache,
            FreshLook(client, self.cache),
            reviewer,
            ProgressWriter(client, self.cache.observe),
            self.metrics,
            rounds=lambda: self.loop.rounds,
            clock=clock,
            writes_per_second=settings.progress_writes_per_second / settings.replicas,
            planned=lambda: self.loop.planned_round,
        )
        parts = ApiParts(
            self.cache,
            self._leases,
            reviewer,
            self.metrics,
            policy=lambda: self.loop.policy,
            last_plan=lambda: self.loop.last,
            leader=lambda: self.election.holder,
            clock=clock,
        )
        self.servers = Servers(
            settings.host,
            [
                Endpoint(
                    scheduler_app(verbs, self.metrics),
                    settings.scheduler_port,
                    self._tls[0].context,
                    settings.scheduler_names,
                ),
                Endpoint(api_app(parts), settings.api_port, self._tls[1].context),
                Endpoint(ops_app(self.metrics.registry, self._missing), settings.ops_port),
            ],
        )

    def stop(self) -> None:
        """Begin to stop: `run` returns when everything is closed."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`. An error that a part raises ends all parts."""
        parts = {
            "watches": self.cache.run(),
            "schemas": self._schemas.run(),
            "leader election": self.election.run(),
            "planning": self.loop.run(),
            "forecasts": self._forecasting.run(),
            "progress": self._leases.run(),
            "certificates": follow(self._files, self._tls),
            "memory": self._settle(),
        }
        await run_parts(parts, self.servers, self._stopping, self._release_lead)

    async def _release_lead(self) -> None:
        with suppress(*CALL_FAILED):
            await self.election.release()

    async def _settle(self) -> None:
        await self.cache.wait_synced()
        heap.settle()

    def _missing(self) -> str:
        if self._stopping.is_set():
            return "shutting down"
        return "" if self.cache.synced else "the cluster has not been read yet"

    def _notify(self) -> None:
        self.loop.notify()

    def _schemas_changed(self, served: Served) -> None:
        for resource in WRITTEN:
            name = f"{resource.plural}.{resource.group}"
            self.metrics.writes.undeclared_fields.labels(name).set(len(served.get(resource, ())))
        self._forecasts.declared = ESTIMATED_START not in served.get(TRAINING_JOBS, ())
        self.loop.notify()

    def _lead_changed(self, leading: bool) -> None:
        self.metrics.leader.set(1 if leading else 0)
        self.loop.notify()


async def serve(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    with tracing(settings.tracing_endpoint, LEASE_NAME, settings.pod_name):
        await _serve(settings)


async def _serve(settings: Settings) -> None:
    async with await KubeClient.connect(settings.kubeconfig) as client:
        extender = Extender(settings, client)
        call_on_signals(extender.stop)
        _LOG.info("listening on ports %s", extender.servers.ports)
        await extender.run()
