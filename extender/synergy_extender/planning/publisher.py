"""Conditions and events of pools, policies, tenants and nodes, and the leader's gauges."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from synergy_api.cluster.failing_nodes import told
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pools import pool_problems
from synergy_api.names import MANAGER_PLAN
from synergy_api.parts.queues import ServiceHistory
from synergy_api.reasons import ENTRIES, Finding, Reason, say
from synergy_api.resources.gpu_pool import GPUPoolStatus
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicyStatus
from synergy_api.resources.tenant_status import TenantStatus
from synergy_api.resources.training_job import FINISHED
from synergy_api.timestamps import format_time
from synergy_core.model.answer import SharesFrom
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.placements import sizes_of
from synergy_extender.cluster.state import ClusterState
from synergy_extender.decisions.history import updated
from synergy_extender.growth.follow import NOBODY, Refused
from synergy_extender.leader import Lead
from synergy_extender.metrics import Metrics
from synergy_extender.planning.conditions import news, policy_statuses, pool_statuses
from synergy_extender.planning.measures import KnownFacts, measure, measure_uses
from synergy_extender.planning.policy import PolicyInForce, history_of
from synergy_extender.snapshot.entitlements import Entitlements, entitlements, never_preempted_gpus
from synergy_extender.tenants.meters import UseMeters
from synergy_extender.tenants.statuses import TenantCounts, TenantFacts, only_hours_differ, tenant_statuses
from synergy_extender.tenants.uses import TenantUse, tenant_uses, tree_of
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.events import Subject, post_event
from synergy_kube.resources import GPU_POOLS, NODES, SCHEDULING_POLICIES, TENANTS, Resource
from synergy_kube.served_schema import told_all

_LOG = logging.getLogger(__name__)
Status = TypeVar("Status", GPUPoolStatus, SchedulingPolicyStatus, TenantStatus)
_COUNTS_EVERY_S = 10.0
"""Between two writes of one Tenant's status of which only the counts have changed."""
_MEASURED_EVERY_S = 2.0
"""Between two looks at all jobs for the gauges."""
_HOURS_EVERY_S = 300.0
"""The same where only GPU-hours have: the next leader knows from the status what is used since."""
_TENANT_WRITES_PER_S = 2.0
"""Of many Tenants together, on average: each waits longer."""


class Publisher:
    """Writes statuses that have changed, posts events of what is new, and sets gauges."""

    def __init__(
        self,
        client: KubeClient,
        cache: ClusterCache,
        metrics: Metrics,
        *,
        lead: Lead,
        refused: Mapping[str, Refused] = NOBODY,
    ) -> None:
        """`refused` are the requests for nodes that the API server refuses, by pool."""
        self._refused = refused
        self._client = client
        self._cache = cache
        self._metrics = metrics
        self._lead = lead
        self._told: dict[Subject, Reason] = {}
        self._counted_at: dict[str, float] = {}
        self._meters = UseMeters()
        self._measure_at = 0.0
        self._facts = KnownFacts()

    def forget(self) -> None:
        """This replica begins to lead: others may have written meanwhile."""
        self._meters.forget()

    async def publish(
        self,
        state: ClusterState,
        policy: PolicyInForce,
        now: float,
        shares_from: SharesFrom = "",
        *,
        planned: int | None = None,
    ) -> None:
        """`shares_from` is what the newest plan says of its allocation, `planned` the newest round that is written. An
        object of which the API server refuses the status is left as it is; the next pass tries again.

        Raises aiohttp.ClientError or TimeoutError.
        """
        if time.monotonic() >= self._measure_at:
            await asyncio.to_thread(measure, self._metrics, state, now, self._facts)
            self._measure_at = time.monotonic() + _MEASURED_EVERY_S
        found = pool_problems(self._cache.pools, state.capacities)
        pools, policies = self._cache.objects("gpupools"), self._cache.objects("schedulingpolicies")
        policy = replace(policy, history=await asyncio.to_thread(_history, policies, state, policy))
        problems = [*self._cache.pool_problems, *found]
        for item, pool in _with(pools, pool_statuses(pools, state, problems, now, self._refused)):
            await self._write(GPU_POOLS, item, pool, now)
        undeclared = told_all(self._client.undeclared)
        told = policy_statuses(policies, policy, now, shares_from, undeclared, planned=planned)
        for item, verdict in _with(policies, told):
            await self._write(SCHEDULING_POLICIES, item, verdict, now)
        await self._publish_tenants(state, now)
        await self._tell_once(_of_no_object(state, policy), now)

    async def _publish_tenants(self, state: ClusterState, now: float) -> None:
        objects = self._cache.objects("tenants")
        if not objects:
            measure_uses(self._metrics.jobs, {})
            return
        uses, statuses = await asyncio.to_thread(self._tenants, objects, state, now)
        measure_uses(self._metrics.jobs, uses)
        least_s = max(_COUNTS_EVERY_S, len(objects) / _TENANT_WRITES_PER_S)
        for item, status in _with(objects, statuses):
            name = str(item["metadata"]["name"])
            every_s = max(least_s, _HOURS_EVERY_S) if only_hours_differ(item, status) else least_s
            waited = abs(now - self._counted_at.get(name, float("-inf"))) >= every_s
            if waited or news(item, status.conditions) is not None:
                self._counted_at[name] = now
                await self._write(TENANTS, item, status, now)

    def _tenants(
        self, objects: list[Object], state: ClusterState, now: float
    ) -> tuple[dict[str, TenantUse], dict[str, TenantStatus]]:
        """What each Tenant uses, and the statuses that have changed: tenths of a second for 10,000 jobs."""
        entitled = entitlements(state.jobs.values(), state.tenancy, now, state.classes)
        tree, tenants = tree_of(state), {key: one.tenant for key, one in entitled.by_job.items()}
        uses = tenant_uses(state, tree, tenants, now)
        hours = self._meters.count(objects, uses, now)
        facts = TenantFacts(state.tenancy, tree, _tenant_counts(state, entitled, now), uses, hours)
        return uses, tenant_statuses(objects, facts, now)

    async def _write(
        self,
        resource: Resource,
        item: Object,
        status: GPUPoolStatus | SchedulingPolicyStatus | TenantStatus,
        now: float,
    ) -> None:
        if not self._lead.leading:
            return
        metadata = item["metadata"]
        name = str(metadata["name"])
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status.to_wire()}
        try:
            async with asyncio.timeout(self._lead.left_s):
                await self._client.apply(resource, name, body, manager=MANAGER_PLAN, subresource="status")
        except Conflict:
            return  # another writer changed it just now: the next pass looks again
        except NotFound:
            _LOG.info("%s %s is gone", resource.kind, name)
            return
        except ApiError as error:
            self._metrics.writes.refused.labels(str(error.code)).inc()
            _LOG.warning("the status of %s %s is refused: %s", resource.kind, name, error)
            return
        told = news(item, status.conditions)
        if told is not None:
            await self._post(Subject(resource, name, str(metadata["uid"])), told, now)

    async def _tell_once(self, standing: Mapping[Subject, Finding], now: float) -> None:
        """Events about what no condition shows; each again only after it was put right meanwhile."""
        if not self._lead.leading:
            return
        for subject, finding in standing.items():
            if self._told.get(subject) != finding.reason:
                await self._post(subject, finding, now)
        self._told = {subject: finding.reason for subject, finding in standing.items()}

    async def _post(self, subject: Subject, finding: Finding, now: float) -> None:
        kind = ENTRIES[finding.reason].event
        if kind is not None:
            await post_event(
                self._client,
                subject,
                kind=kind,
                reason=finding.reason,
                message=finding.message,
                component=MANAGER_PLAN,
                at=format_time(float(int(now))),
            )


def _tenant_counts(state: ClusterState, entitled: Entitlements, now: float) -> dict[str, TenantCounts]:
    jobs = list(state.jobs.values())
    unfinished: Counter[str] = Counter(
        entitled.by_job[job.key].tenant for job in jobs if job.status.phase not in FINISHED and job.spec.array is None
    )
    never = never_preempted_gpus(jobs, entitled, now)
    return {
        name: TenantCounts(jobs=count, never_preempted_gpus=never.get(name, 0)) for name, count in unfinished.items()
    }


def _with(objects: Iterable[Object], statuses: Mapping[str, Status]) -> Iterator[tuple[Object, Status]]:
    for item in objects:
        if item["metadata"]["name"] in statuses:
            yield item, statuses[item["metadata"]["name"]]


def _history(policies: Iterable[Object], state: ClusterState, policy: PolicyInForce) -> ServiceHistory | None:
    """The finished jobs' service from the policy's object, on whose version the write depends, brought up to date."""
    for item in policies:
        if item["metadata"]["name"] == DEFAULT_POLICY_NAME:
            spec, sizes = policy.spec, sizes_of(state.capacities)
            return updated(history_of(item), state.jobs.values(), spec.queues, spec.placement, sizes)
    return None


def _of_no_object(state: ClusterState, policy: PolicyInForce) -> dict[Subject, Finding]:
    """What nodes say wrongly of themselves, and the policy that is not there."""
    found = {Subject(NODES, name, name): told(failing) for name, failing in state.failing.items()}
    found |= {
        # Kubernetes itself puts a node's name in place of its uid where events tell of it
        Subject(NODES, capacity.name, capacity.name): capacity.problem.finding
        for capacity in state.capacities
        if capacity.problem is not None and not capacity.problem.pools
    }
    if policy.missing:
        spec = policy.spec
        facts = {"policy": spec.policy, "mechanism": spec.mechanism, "seconds": spec.round_seconds}
        subject = Subject(SCHEDULING_POLICIES, DEFAULT_POLICY_NAME, "")
        found[subject] = say(Reason.POLICY_MISSING, default=DEFAULT_POLICY_NAME, **facts)
    return found
