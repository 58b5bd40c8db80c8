"""What the leader tells people of the cluster: conditions of pools and policy, and gauges."""

import logging
from collections.abc import Callable
from typing import Any

from synergy_api.names import MANAGER_PLAN
from synergy_api.pools import pool_problems
from synergy_api.scheduling_policy import DEFAULT_POLICY_NAME
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.state import ClusterState
from synergy_extender.metrics import Metrics
from synergy_extender.planning.conditions import policy_status, pool_statuses
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.planning.standing import Standing, standing
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import GPU_POOLS, SCHEDULING_POLICIES, Resource

_LOG = logging.getLogger(__name__)


class Publisher:
    """Writes statuses that have changed, and sets gauges."""

    def __init__(
        self, client: KubeClient, cache: ClusterCache, metrics: Metrics, *, leading: Callable[[], bool]
    ) -> None:
        self._client = client
        self._cache = cache
        self._metrics = metrics
        self._leading = leading

    async def publish(self, state: ClusterState, policy: PolicyInForce, now: float) -> None:
        """Raises ApiError, aiohttp.ClientError or TimeoutError."""
        self._measure(state, now)
        problems = [*self._cache.pool_problems, *pool_problems(self._cache.pools, state.capacities)]
        for name, status in pool_statuses(self._cache.pool_objects(), state.capacities, problems, now).items():
            await self._write(GPU_POOLS, name, status.to_wire())
        written = self._cache.policy
        if written is not None and (verdict := policy_status(written, policy, now)) is not None:
            await self._write(SCHEDULING_POLICIES, DEFAULT_POLICY_NAME, verdict.to_wire())

    async def _write(self, resource: Resource, name: str, status: dict[str, Any]) -> None:
        if not self._leading():
            return
        try:
            await self._client.apply(resource, name, {"status": status}, manager=MANAGER_PLAN, subresource="status")
        except NotFound:
            _LOG.info("%s %s is gone", resource.kind, name)

    def _measure(self, state: ClusterState, now: float) -> None:
        stands = [standing(job, now) for job in state.jobs.values()]
        self._metrics.queue_length.set(stands.count(Standing.WAITING) + stands.count(Standing.BACKING_OFF))
        self._metrics.allocations.labels("granted").set(stands.count(Standing.HOLDING))
        self._metrics.allocations.labels("revoked").set(stands.count(Standing.LEAVING))
        total: dict[str, int] = {}
        held: dict[str, int] = {}
        for capacity in state.capacities:
            total[capacity.gpu_type] = total.get(capacity.gpu_type, 0) + capacity.gpus
            held[capacity.gpu_type] = held.get(capacity.gpu_type, 0) + state.pods.held(capacity.name).gpus
        for gpu_type, gpus in total.items():
            self._metrics.gpus.labels(gpu_type, "all").set(gpus)
            self._metrics.gpus.labels(gpu_type, "held").set(held[gpu_type])
