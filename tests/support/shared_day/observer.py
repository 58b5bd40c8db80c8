"""Watches every change of TrainingJobs and pods, and checks at each what Tenants promise.

* No tenant, with those below it, has more GPUs of a type than its limit, or than its guarantee and what it may borrow.
  Bound pods count until they have ended or are gone.
* A job that fits into the rest of its tenant's guarantee gets GPUs within one round.

It reads specs and statuses only, and shares no code with the planner.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from support.on_cluster.observer import pod_request
from synergy_api import names
from synergy_core.model.snapshot import Tenant
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import PODS, TRAINING_JOBS

Object = Mapping[str, Any]
_ENDED = ("Succeeded", "Failed")


class TenantObserver:
    """Gathers broken promises in `broken`. An asynchronous context, in which it watches."""

    def __init__(
        self,
        kube: KubeClient,
        tenants: Iterable[Tenant],
        namespaces: Mapping[str, str],
        types_of_nodes: Mapping[str, str],
        *,
        within_s: float,
    ) -> None:
        """`namespaces` has the tenant of each namespace. A guarantee is met within `within_s`."""
        self.broken: list[str] = []
        self.events = 0
        self.waits: list[float] = []
        """Seconds for which jobs waited that fitted into a guarantee, of those that were served."""
        self.most: dict[tuple[str, str], int] = defaultdict(int)
        """The most GPUs that a tenant had bound of a type."""
        self._tenants = {tenant.name: tenant for tenant in tenants}
        self._tenant_of = dict(namespaces)
        self._types = dict(types_of_nodes)
        self._within_s = within_s
        self._bound: dict[str, tuple[str, str, int]] = {}
        """By uid of a pod: tenant, GPU type and GPUs."""
        self._has: dict[tuple[str, str], int] = defaultdict(int)
        """GPUs of bound pods by tenant and GPU type, those of tenants below included."""
        self._granted: dict[tuple[str, str], tuple[str, int]] = {}
        """By job: GPU type and GPUs that it was given."""
        self._waiting: dict[str, dict[str, int]] = defaultdict(dict)
        """By tenant: its waiting jobs and their GPUs."""
        self._fits_since: dict[tuple[str, str], float] = {}
        """Since when a waiting job fits into its tenant's guarantee."""
        self._reflectors = [
            Reflector(kube, PODS, on_change=self._pod_changed),
            Reflector(kube, TRAINING_JOBS, on_change=self._job_changed),
        ]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "TenantObserver":
        for reflector in self._reflectors:
            self._tasks.append(asyncio.create_task(reflector.run()))
            await reflector.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Limits

    def _pod_changed(self, change: Change) -> None:
        pod = change.new or change.old or {}
        tenant = self._tenant_of.get(pod["metadata"]["namespace"])
        if tenant is None:
            return
        self.events += 1
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        alive = change.new is not None and node is not None and pod["status"].get("phase") not in _ENDED
        if alive and uid not in self._bound:
            self._bound[uid] = tenant, self._types[node], int(pod_request(pod, names.RESOURCE_GPU))
            self._count(*self._bound[uid])
        elif not alive and uid in self._bound:
            tenant, gpu_type, gpus = self._bound.pop(uid)
            self._count(tenant, gpu_type, -gpus)

    def _count(self, tenant: str, gpu_type: str, gpus: int) -> None:
        for name in self._above(tenant):
            key = name, gpu_type
            self._has[key] += gpus
            self.most[key] = max(self.most[key], self._has[key])
            if gpus > 0 and self._has[key] > self._cap(name, gpu_type):
                self.broken.append(f"{name} has {self._has[key]} {gpu_type} bound, and may have {self._cap(*key)}")

    # Guarantees

    def _job_changed(self, change: Change) -> None:
        tenant = self._tenant_of.get(change.key[0])
        if tenant is None:
            return
        self.events += 1
        key, job = change.key, change.new or {}
        status = job.get("status") or {}
        allocation = status.get("allocation") or {}
        before = self._granted.pop(key, None)
        self._waiting[tenant].pop(key[1], None)
        if allocation.get("state") == "Granted" and status.get("phase") not in _ENDED:
            self._granted[key] = allocation["gpuType"], sum(one["gpus"] for one in allocation["workers"])
            since = self._fits_since.pop((tenant, key[1]), None)
            if since is not None and before is None:
                self.waits.append(time.monotonic() - since)
        elif status.get("phase") == "Queued":
            self._waiting[tenant][key[1]] = job["spec"]["gpus"]
        self.look(tenant)

    def look(self, tenant: str) -> None:
        """Check the waiting jobs of a tenant."""
        now, held = time.monotonic(), self._held(tenant)
        for name, gpus in self._waiting[tenant].items():
            key = tenant, name
            if not any(self._fits(tenant, gpu_type, gpus, held) for gpu_type in set(self._types.values())):
                self._fits_since.pop(key, None)
                continue
            since = self._fits_since.setdefault(key, now)
            if now - since > self._within_s:
                self.broken.append(f"{name} of {tenant} fits into its guarantee for {now - since:.1f} s: {held}")
                self._fits_since[key] = now
        for key in [one for one in self._fits_since if one[0] == tenant and one[1] not in self._waiting[tenant]]:
            del self._fits_since[key]

    def _held(self, tenant: str) -> dict[tuple[str, str], int]:
        """GPUs given to a tenant and those above it, with all below them."""
        above = set(self._above(tenant))
        found: dict[tuple[str, str], int] = defaultdict(int)
        for (namespace, _), (gpu_type, gpus) in self._granted.items():
            for name in self._above(self._tenant_of[namespace]):
                if name in above:
                    found[name, gpu_type] += gpus
        return found

    def _fits(self, tenant: str, gpu_type: str, gpus: int, held: Mapping[tuple[str, str], int]) -> bool:
        guarantee = self._tenants[tenant].guarantee.get(gpu_type, 0)
        if held.get((tenant, gpu_type), 0) + gpus > guarantee:
            return False
        return all(held.get((name, gpu_type), 0) + gpus <= self._cap(name, gpu_type) for name in self._above(tenant))

    def _above(self, name: str) -> list[str]:
        found = [name]
        while (parent := self._tenants[found[-1]].parent) is not None:
            found.append(parent)
        return found

    def _cap(self, name: str, gpu_type: str) -> float:
        tenant = self._tenants[name]
        most = float(tenant.limit.get(gpu_type, float("inf")))
        if gpu_type in tenant.borrowing:
            most = min(most, tenant.guarantee.get(gpu_type, 0) + tenant.borrowing[gpu_type])
        return most
