"""Makes and deletes requests for nodes, and marks nodes for autoscalers."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from synergy_api.names import MANAGER_AUTOSCALING
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.state import ClusterState
from synergy_extender.growth.bodies import pod_template, provisioning_request, request_name, template_name
from synergy_extender.growth.follow import Ask, Refused, asks, over
from synergy_extender.growth.idle import IN_USE, Marks, in_use, is_idle, marks_on, node_patch, wanted_marks
from synergy_extender.leader import Lead
from synergy_extender.metrics import Metrics
from synergy_extender.snapshot.node_groups import growing, request_states
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import NODES, POD_TEMPLATES, PROVISIONING_REQUESTS

_LOG = logging.getLogger(__name__)
_AFTER_REFUSAL_S: Final = 60.0
_MOST_MARKS: Final = 20
"""Nodes that are marked in one pass at the most; the next one goes on."""


class Autoscaling:
    """Of the replica that leads. It remembers nothing that a new leader would need."""

    def __init__(self, client: KubeClient, cache: ClusterCache, metrics: Metrics, *, lead: Lead) -> None:
        self._client = client
        self._cache = cache
        self._metrics = metrics.growth
        self._lead = lead
        self._marked: dict[str, tuple[Marks, Marks]] = {}
        self.refused: dict[str, Refused] = {}
        """By pool, what the API server said to the last request, where it refused it."""

    async def keep(self, state: ClusterState, plan: Plan | None) -> None:
        """Take the mark off idle nodes that a plan gives to jobs, before the plan is written."""
        given = plan.allocations if plan is not None and state.grows else ()
        nodes = {share.node for one in given for share in one.workers}
        for node in sorted(nodes):
            if is_idle(marks_on(state, node)):
                await self._mark(state, node, IN_USE)

    async def follow(
        self, state: ClusterState, plan: Plan | None, reserved: Iterable[core.Allocation], now: float
    ) -> None:
        """Ask for what a plan wants, delete the requests that are over, and tell autoscalers which nodes are in use.

        Without a plan, nodes are not asked for. `reserved` are places kept for jobs that move there.
        Raises aiohttp.ClientError or TimeoutError.
        """
        if not state.grows:
            return
        for ask in asks(plan.growth if plan is not None else (), state, now):
            refused = self.refused.get(ask.pool)
            if self._lead.leading and (refused is None or refused.until <= now):
                await self._ask(ask, now)
        for name in over(state, frozenset(plan.unneeded) if plan is not None else frozenset(), now):
            await self._delete(name)
        await self._mark_all(state, (*reserved, *(plan.allocations if plan is not None else ())), now)
        self._measure(state, now)

    async def _mark_all(self, state: ClusterState, planned: Iterable[core.Allocation], now: float) -> None:
        bound = {one.name for one in state.capacities if self._cache.assumed.pods_to(one.name)}
        wanted = wanted_marks(state, in_use(state, bound, planned), now)
        behind = [node for node, marks in sorted(wanted.items()) if marks_on(state, node) != marks]
        self._marked = {node: told for node, told in self._marked.items() if node in wanted}
        for node in [one for one in behind if self._marked.get(one) != (wanted[one], marks_on(state, one))][
            :_MOST_MARKS
        ]:
            await self._mark(state, node, wanted[node])

    async def _ask(self, ask: Ask, now: float) -> None:
        item = next((one for one in self._cache.objects("gpupools") if one["metadata"]["name"] == ask.pool), None)
        pool, how = next((one for one in growing(self._cache.state()) if one[0].name == ask.pool), (None, None))
        requests = self._cache.requests
        if item is None or pool is None or how is None or requests is None:
            return
        name, namespace = request_name(ask.pool, now), requests.namespace
        try:
            async with asyncio.timeout(self._lead.left_s):
                template = pod_template(item, pool, how)
                await self._client.apply(
                    POD_TEMPLATES, template_name(ask.pool), template, namespace, manager=MANAGER_AUTOSCALING
                )
                body = provisioning_request(item, how, name, ask.nodes, ask.failures)
                requests.wrote(await self._client.create(PROVISIONING_REQUESTS, body, namespace))
        except ApiError as error:
            self.refused[ask.pool] = Refused(str(error), now + _AFTER_REFUSAL_S)
            self._metrics.requests.labels(ask.pool, "refused").inc()
            _LOG.warning("%d nodes of pool %s cannot be asked for: %s", ask.nodes, ask.pool, error)
            return
        self.refused.pop(ask.pool, None)
        self._metrics.requests.labels(ask.pool, "made").inc()
        _LOG.info("%d nodes of pool %s are asked for", ask.nodes, ask.pool, extra={"request": name})

    async def _delete(self, name: str) -> None:
        requests = self._cache.requests
        if requests is None or not self._lead.leading:
            return
        try:
            async with asyncio.timeout(self._lead.left_s):
                await self._client.delete(PROVISIONING_REQUESTS, name, requests.namespace)
        except NotFound:
            pass
        except ApiError as error:
            _LOG.warning("the request for nodes %s cannot be deleted: %s", name, error)

    async def _mark(self, state: ClusterState, node: str, marks: Marks) -> None:
        """Where the API server refuses, or an administrator has said otherwise, the node stays as it is."""
        if not self._lead.leading:
            return
        self._marked[node] = marks, marks_on(state, node)
        try:
            async with asyncio.timeout(self._lead.left_s):
                await self._client.apply(NODES, node, node_patch(marks), manager=MANAGER_AUTOSCALING, force=False)
        except (Conflict, NotFound) as error:
            _LOG.info("node %s is not marked for autoscalers: %s", node, error)
        except ApiError as error:
            _LOG.warning("node %s cannot be marked for autoscalers: %s", node, error)

    def _measure(self, state: ClusterState, now: float) -> None:
        states = request_states(state, now)
        for pool, _ in growing(state):
            asked = [one for one in states[pool.name] if one.open]
            self._metrics.promised.labels(pool.name).set(sum(one.missing for one in asked))
            idle = sum(one.pool == pool.name and is_idle(marks_on(state, one.name)) for one in state.capacities)
            self._metrics.idle.labels(pool.name).set(idle)
            self._metrics.failures.labels(pool.name).set(max((one.failures for one in states[pool.name]), default=0))
