"""The cluster as it is now, followed by watches, and the subscribers that get its changes."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from synergy_api.cluster.nodes import tolerations_of_all
from synergy_api.cluster.pool import read_pools
from synergy_api.cluster.pools import node_capacities
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME
from synergy_dashboard.live.changes import Subscriber
from synergy_dashboard.live.rows import Rows
from synergy_dashboard.live.trims import job_of, said_by_node, trim_job, trim_node, trim_plain
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import GPU_POOLS, NODES, SCHEDULING_POLICIES, TENANTS, TRAINING_JOBS
from synergy_view.seen import SeenJob
from synergy_view.top import gpu_hours

_LOG = logging.getLogger(__name__)

TELL_EVERY_S: Final = 0.1
"""Subscribers get changes ten times a second at most."""
WHOLE_EVERY_S: Final = 0.2
"""Types, tenants and reasons, which are about all jobs, five times a second at most."""
_RENEW_EVERY_S: Final = 30.0
"""GPU-hours of open runs grow without any change."""


class LiveCluster:
    """Jobs, nodes, pools, the policy and tenants in memory. `clock` gives Unix time."""

    def __init__(self, client: KubeClient, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.rows = Rows()
        self.past_namespaces: set[str] = set()
        """Those that have had jobs, as far as the history remembers, the present ones included."""
        self._new_namespaces: set[str] = set()
        self._dirty = asyncio.Event()
        self._nodes_changed = False
        self._policy_news = False
        self._subscribers: set[Subscriber] = set()
        self._reflectors = {
            "jobs": Reflector(client, TRAINING_JOBS, trim=trim_job, on_change=self._job_changed),
            "nodes": Reflector(client, NODES, trim=trim_node, on_change=self._node_changed),
            "pools": Reflector(client, GPU_POOLS, trim=trim_plain, on_change=self._pool_changed),
            "policies": Reflector(client, SCHEDULING_POLICIES, trim=trim_plain, on_change=self._policy_changed),
            "tenants": Reflector(client, TENANTS, trim=trim_plain, optional=True),
        }

    async def run(self) -> None:
        """Follow the cluster and notify subscribers, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, reflector in self._reflectors.items():
                group.create_task(reflector.run(), name=f"watch {name}")
            group.create_task(self._tell(), name="changes")

    @property
    def synced(self) -> bool:
        """Whether every collection has been read once."""
        return all(one.synced.is_set() for one in self._reflectors.values())

    async def wait_synced(self) -> None:
        """Wait until every collection has been read once."""
        await asyncio.gather(*(one.synced.wait() for one in self._reflectors.values()))

    @property
    def policy(self) -> Mapping[str, Any] | None:
        """The SchedulingPolicy in force, as it was written."""
        return self._reflectors["policies"].get("", DEFAULT_POLICY_NAME)

    @property
    def tenants(self) -> Iterator[Mapping[str, Any]]:
        """The Tenants as they were written."""
        return iter(self._reflectors["tenants"])

    def job(self, namespace: str, name: str) -> SeenJob | None:
        """One job."""
        return self.rows.jobs.get(f"{namespace}/{name}")

    def set_recorded(self, namespaces: set[str]) -> None:
        """These are in the history now. It may not have those yet whose jobs came since the last call."""
        self.past_namespaces = namespaces | self.rows.namespaces | self._new_namespaces
        self._new_namespaces = set()

    def refresh(self) -> None:
        """Take in changes of nodes before rows are read."""
        if self._nodes_changed:
            self._nodes_changed = False
            nodes = list(self._reflectors["nodes"])
            pools, _ = read_pools(self._reflectors["pools"])
            self.rows.set_nodes(node_capacities(nodes, pools, tolerations_of_all(nodes)))

    @contextmanager
    def subscribed(self, user: str = "") -> Iterator[Subscriber]:
        """A subscriber of a user, which gets all changes from now on."""
        one = Subscriber(user)
        self._subscribers.add(one)
        try:
            yield one
        finally:
            self._subscribers.discard(one)

    @property
    def subscribers(self) -> int:
        """How many there are."""
        return len(self._subscribers)

    def subscribers_of(self, user: str) -> int:
        """How many of them are a user's."""
        return sum(one.user == user for one in self._subscribers)

    async def _tell(self) -> None:
        whole_at = renewed_at = 0.0
        while True:
            await self._wait(_RENEW_EVERY_S)
            self.refresh()
            now = time.monotonic()
            if self._subscribers and now >= renewed_at + _RENEW_EVERY_S:
                renewed_at = now
                self.rows.renew_tenants(self.clock())
            whole = now >= whole_at + WHOLE_EVERY_S
            whole_at = now if whole else whole_at
            changes = self.rows.take(self.clock(), whole=whole)
            changes.policy, self._policy_news = self._policy_news, False
            if changes:
                for one in self._subscribers:
                    one.tell(changes)
            await asyncio.sleep(TELL_EVERY_S)
            if self.rows.stale:
                self._dirty.set()

    async def _wait(self, seconds: float) -> None:
        """Until something changed, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._dirty.wait()
        except TimeoutError:
            pass
        self._dirty.clear()

    def _job_changed(self, change: Change) -> None:
        job = job_of(change.new)
        if job is not None:
            self.past_namespaces.add(job.namespace)
            self._new_namespaces.add(job.namespace)
            self._put(job)
        else:
            self.rows.drop("/".join(change.key))
        self._dirty.set()

    def _put(self, job: SeenJob) -> None:
        """One job whose times cannot be read must not end the page for all."""
        try:
            gpu_hours(job, self.clock())  # rows of tenants ask it of all jobs together
            self.rows.put(job, self.clock())
        except (ValueError, ArithmeticError) as error:
            _LOG.warning("TrainingJob %s is left out: %s", job.full_name, error)
            self.rows.drop(job.full_name)

    def _node_changed(self, change: Change) -> None:
        if said_by_node(change.old) != said_by_node(change.new):
            self._nodes_changed = True
            self._dirty.set()

    def _pool_changed(self, change: Change) -> None:
        self._nodes_changed = True
        self._dirty.set()

    def _policy_changed(self, change: Change) -> None:
        if _said_of_policy(change.old) != _said_of_policy(change.new):
            self._policy_news = True
            self._dirty.set()


def _said_of_policy(item: Mapping[str, Any] | None) -> tuple[Any, Any]:
    """What is written and what is in force. The status has more, which changes often, such as the planned round."""
    if item is None:
        return None, None
    in_force = (item.get("status") or {}).get("inForce") or {}
    return item.get("spec"), {name: value for name, value in in_force.items() if name != "round"}
