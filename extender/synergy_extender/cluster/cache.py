"""The watched copy of the cluster."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from synergy_api.amounts import Amounts
from synergy_api.cluster.nodes import Object, tolerations_of_all
from synergy_api.cluster.pool import Pool, PoolProblem, read_pools, with_devices
from synergy_api.cluster.pools import NodeCapacity, node_capacities
from synergy_api.cluster.priority_classes import PriorityClasses, read_priority_classes
from synergy_api.cluster.slices import DeviceKey
from synergy_api.cluster.tenancy import Tenancy, read_tenancy
from synergy_api.names import GPU_RESOURCES, LABEL_JOB
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME
from synergy_extender.cluster.jobs.index import JobIndex
from synergy_extender.cluster.jobs.orphans import Orphans
from synergy_extender.cluster.ledger import AssumedBindings, Ledger, held_by_others
from synergy_extender.cluster.node_requests.watch import NodeRequests
from synergy_extender.cluster.one_look import Hidden, read_each
from synergy_extender.cluster.pod_index import PodIndex, changes_room
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.trims import (
    VIEW,
    allocatable,
    facts_of_node,
    facts_of_policy,
    said_by_author,
    trim_claim,
    trim_namespace,
    trim_node,
    trim_pod,
    trim_priority_class,
    trim_quota,
    trim_service,
    trim_slice,
    without_version,
)
from synergy_extender.cluster.views import JobView, Key, PodView
from synergy_kube import Change, KubeClient, NotFound, Reflector
from synergy_kube.resources import (
    GPU_POOLS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    SCHEDULING_POLICIES,
    SERVICES,
    TENANTS,
    TRAINING_JOBS,
)

_STRETCH = 250
_MOST_SINGLY = 32
"""Of so many jobs each is read by itself; of more, all jobs are."""


class ClusterCache:
    """Jobs, pods, nodes, pools and policies, kept by watches.

    `on_change` is called after each change that may affect a decision; progress reports and node heartbeats are none.
    `requests` are the nodes that are asked for; None: none may be.
    """

    def __init__(
        self,
        client: KubeClient,
        on_change: Callable[[], None],
        priority_class: str = "",
        requests: NodeRequests | None = None,
    ) -> None:
        self._on_change = on_change
        self._jobs = JobIndex(on_change)
        self.requests = requests
        watch, optional = partial(Reflector, client), partial(Reflector, client, optional=True)
        self._reflectors = {
            "trainingjobs": watch(TRAINING_JOBS, trim=self._jobs.trim, on_change=self._jobs.changed),
            "pods": watch(PODS, trim=trim_pod, on_change=self._pod_changed),
            "nodes": watch(NODES, trim=trim_node, on_change=self._node_changed),
            "gpupools": watch(GPU_POOLS, on_change=self._pool_changed),
            "schedulingpolicies": watch(SCHEDULING_POLICIES, on_change=partial(self._facts_changed, facts_of_policy)),
            "resourcequotas": watch(RESOURCE_QUOTAS, trim=trim_quota, on_change=self._view_changed),
            "services": watch(SERVICES, label_selector=LABEL_JOB, trim=trim_service, on_change=self._service_changed),
            "namespaces": watch(NAMESPACES, trim=trim_namespace, on_change=self._tenancy_changed),
            "tenants": optional(TENANTS, on_change=self._tenancy_changed),
            "priorityclasses": optional(PRIORITY_CLASSES, trim=trim_priority_class, on_change=self._classes_changed),
            "resourceslices": optional(RESOURCE_SLICES, trim=trim_slice, on_change=self._slice_changed),
            "resourceclaims": optional(RESOURCE_CLAIMS, trim=trim_claim, on_change=self._view_changed),
        }
        if requests is not None:
            self._reflectors["provisioningrequests"] = requests.follow(client, on_change)
        self._orphans = Orphans(self._reflectors["namespaces"])
        self._client = client
        self._capacities: list[NodeCapacity] | None = None
        self._nodes: dict[str, Object] = {}
        """Each as it was when more than its version changed: who compares two states finds the same objects."""
        self._tenancy: Tenancy | None = None
        self._classes = PriorityClasses()
        self._allocatable: dict[str, Amounts] = {}
        self._priority_class = priority_class
        self._services: set[Key] = set()
        self.pods = PodIndex()
        self.assumed = AssumedBindings()
        self.pools, self.pool_problems = list[Pool](), list[PoolProblem]()

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, reflector in self._reflectors.items():
                group.create_task(reflector.run(), name=f"watch {name}")

    async def read_once(self, namespace: str) -> Hidden:
        """Read every collection now and follow none, with the rights of any user: what may not be listed in all
        namespaces is read in `namespace`, if it may be there.

        Raises ApiError, aiohttp.ClientError or TimeoutError for other reasons than missing rights.
        """
        return await read_each(self._reflectors, namespace)

    @property
    def synced(self) -> bool:
        """Whether every collection has been read once."""
        return all(reflector.synced.is_set() for reflector in self._reflectors.values())

    async def wait_synced(self) -> None:
        """Wait until every collection has been read once."""
        await asyncio.gather(*(reflector.synced.wait() for reflector in self._reflectors.values()))

    @property
    def policy(self) -> Object | None:
        """The SchedulingPolicy in force, as it was written."""
        return self._reflectors["schedulingpolicies"].get("", DEFAULT_POLICY_NAME)

    def objects(self, plural: str) -> list[Object]:
        """The GPUPools, SchedulingPolicies or Tenants as they were written."""
        return list(self._reflectors[plural])

    @property
    def tenancy(self) -> Tenancy:
        """Which namespaces belong to which tenant."""
        if self._tenancy is None:
            self._tenancy = read_tenancy(self._reflectors["tenants"], self._reflectors["namespaces"])
        return self._tenancy

    def state(self) -> ClusterState:
        """The cluster now, as a copy that another thread may read: what is in it never changes."""
        capacities = self.capacities()
        claimed = self._count_claims(capacities)
        return ClusterState(
            jobs=self._orphans.without(self.jobs, self.pods),
            capacities=capacities,
            nodes=dict(self._nodes),
            allocatable=dict(self._allocatable),
            pods=self.pods.copy(),
            quotas=tuple(quota[VIEW] for quota in self._reflectors["resourcequotas"]),
            services=frozenset(self._services),
            priority_class=self._priority_class,
            tenancy=self.tenancy,
            classes=self._classes,
            claimed=claimed,
            pools=tuple(self.pools),
            requests=self.requests.listed() if self.requests is not None else (),
            grows=self.requests is not None,
        )

    def ledger(self) -> Ledger:
        """What is free on each node now."""
        self._count_claims(self.capacities())
        return Ledger(self._allocatable, self.pods, self.assumed)

    def capacities(self) -> list[NodeCapacity]:
        """What each GPU node offers."""
        if self._capacities is None:
            nodes = with_devices(self._reflectors["nodes"], (one[VIEW] for one in self._reflectors["resourceslices"]))
            self._capacities = node_capacities(nodes, self.pools, tolerations_of_all(nodes))
            self._count_gpus(self._capacities, nodes)
        return self._capacities

    def _count_gpus(self, capacities: Sequence[NodeCapacity], nodes: Sequence[Object]) -> None:
        """Let pods and the ledger count the resources that are each node's GPUs."""
        self.pods.count({one.name: one.gpu_resources for one in capacities if one.gpu_resources != GPU_RESOURCES})
        self._allocatable = allocatable(nodes, capacities, self.pools)

    def _count_claims(self, capacities: Sequence[NodeCapacity]) -> frozenset[DeviceKey]:
        """Let the ledger count what claims of others hold; all devices that claims hold."""
        held = frozenset(key for claim in self._reflectors["resourceclaims"] for key in claim[VIEW])
        self.pods.claim(held_by_others(capacities, held, self.jobs.values()))
        return held

    @property
    def jobs(self) -> Mapping[Key, JobView]:
        """The TrainingJobs that parse."""
        return self._jobs.views

    @property
    def arrivals(self) -> int:
        """How many times a job has begun to wait for a place."""
        return self._jobs.arrivals

    @property
    def observe(self) -> Callable[..., None]:
        """Takes a TrainingJob that the API server answered with (`JobIndex.observe`)."""
        return self._jobs.observe

    @property
    def vanished(self) -> Callable[[JobView], None]:
        """Takes a job that the API server does not have any more (`JobIndex.vanished`)."""
        return self._jobs.vanished

    async def refresh_jobs(self) -> None:
        """Read the TrainingJobs now, past a watch that may be behind: those that have changed since it told of them."""
        behind = []
        for number, (key, version) in enumerate((await self._client.versions(TRAINING_JOBS)).items()):
            if int(version) > self._version_of(key):
                behind.append(key)
            if number % _STRETCH == 0:
                await asyncio.sleep(0)  # others on the event loop answer requests
        if len(behind) <= _MOST_SINGLY:
            await asyncio.gather(*(self._refresh_job(key) for key in behind))
            return
        async for page in self._client.pages(TRAINING_JOBS):
            for item in page:
                self.observe(item)
                await asyncio.sleep(0)

    async def _refresh_job(self, key: tuple[str, str]) -> None:
        namespace, name = key
        with suppress(NotFound):  # it has been deleted since
            self.observe(await self._client.get(TRAINING_JOBS, name, namespace))

    def _version_of(self, key: tuple[str, str]) -> int:
        """The newest that the watch or an answer has shown of a job; 0 if none has."""
        watched, view = self._reflectors["trainingjobs"].get(*key), self.jobs.get(Key(*key))
        return max(
            int(watched["metadata"]["resourceVersion"]) if watched is not None else 0,
            int(view.resource_version) if view is not None else 0,
        )

    def _pod_changed(self, change: Change) -> None:
        old: PodView | None = change.old[VIEW] if change.old is not None else None
        new: PodView | None = change.new[VIEW] if change.new is not None else None
        if new is None:
            self.pods.drop(Key(*change.key))
        else:
            self.pods.put(new)
        if old is not None and (new is None or new.uid != old.uid):
            self.assumed.remove(old.uid)
        if new is not None and (new.node or new.terminal):
            self.assumed.remove(new.uid)
        if changes_room(old, new):
            self._on_change()

    def _node_changed(self, change: Change) -> None:
        _, name = change.key
        if change.new is None:
            del self._nodes[name]
        elif without_version(change.old) != without_version(change.new):
            self._nodes[name] = change.new
        if facts_of_node(change.old) != facts_of_node(change.new):
            self._capacities = None
            self._on_change()

    def _pool_changed(self, change: Change) -> None:
        self.pools, self.pool_problems = read_pools(self._reflectors["gpupools"])
        self._capacities = None
        self._on_change()

    def _slice_changed(self, change: Change) -> None:
        self._capacities = None
        self._view_changed(change)

    def _view_changed(self, change: Change) -> None:
        self._facts_changed(lambda item: (item or {}).get(VIEW), change)

    def _facts_changed(self, facts: Callable[[Object | None], object], change: Change) -> None:
        if facts(change.old) != facts(change.new):
            self._on_change()

    def _service_changed(self, change: Change) -> None:
        """No plan depends on it alone: quotas that count Services change with it."""
        for item, change_of in ((change.old, self._services.discard), (change.new, self._services.add)):
            if item is not None and item["job"]:
                change_of(Key(change.key[0], item["job"]))

    def _classes_changed(self, change: Change) -> None:
        classes = read_priority_classes(self._reflectors["priorityclasses"])
        if classes != self._classes:
            self._classes = classes
            self._on_change()

    def _tenancy_changed(self, change: Change) -> None:
        if said_by_author(change.old) != said_by_author(change.new):
            self._tenancy = None
            self._on_change()
