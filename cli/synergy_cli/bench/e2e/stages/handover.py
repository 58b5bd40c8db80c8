"""The leading replica ends while pods are being bound: how long until another plans, and whether a binding is lost."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from synergy_cli.bench.e2e.load import GPUS_PER_NODE, Seen, apply_jobs
from synergy_cli.bench.e2e.polling import polled
from synergy_cli.bench.e2e.product import SERVICE_ADDRESS, Product, Replica, leader_of
from synergy_extender.app import LEASE_NAME
from synergy_kube import KubeClient, NotFound, Resource
from synergy_kube.resources import LEASES, SERVICES

_SERVICE = "kube-synergy-extender"
_PORT = 9443
_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True)
_WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class HandOver:
    """`killed`: SIGKILL, as in a crash; else SIGTERM, as in a rolling update. `seconds` from the signal to the first
    place given to a job that was applied after it. `lost` counts jobs whose first run's pods are not all on their
    planned nodes, `doubled` GPUs given twice."""

    killed: bool
    seconds: float
    jobs: int
    bound_before: int
    lost: int
    doubled: int


@asynccontextmanager
async def service(product: Product, kube: KubeClient, replicas: list[Replica]) -> AsyncIterator[str]:
    """A Service in front of the replicas, as the chart has one, followed by the real kube-proxy; its host:port."""
    ports = [{"name": "verbs", "port": _PORT, "protocol": "TCP"}]
    spec = {"clusterIP": SERVICE_ADDRESS, "ports": ports}
    await kube.create(SERVICES, {"metadata": {"name": _SERVICE}, "spec": spec}, product.namespace)
    for replica in replicas:
        await joins(product, kube, replica)
    try:
        yield f"{SERVICE_ADDRESS}:{_PORT}"
    finally:
        await kube.delete(SERVICES, _SERVICE, product.namespace)
        for replica in replicas:
            with suppress(NotFound):
                await leaves(product, kube, replica)


async def leader(product: Product, kube: KubeClient, replicas: list[Replica]) -> Replica:
    """The replica that holds the Lease."""
    running = {replica.program.name: replica for replica in replicas if replica.program.running}
    holder = ""

    async def led() -> bool:
        nonlocal holder
        try:
            holder = leader_of(await kube.get(LEASES, LEASE_NAME, product.namespace))
        except NotFound:
            return False
        return holder in running

    await polled(led, "a replica to lead", _WAIT_SECONDS)
    return running[holder]


async def measure_hand_over(
    product: Product, kube: KubeClient, seen: Seen, leading: Replica, *, name: str, jobs: int, killed: bool
) -> HandOver:
    """End the leader when a third of `jobs` new jobs is bound; as many come right after. What a kubelet does when a
    container has ended is done here: its address leaves the Service."""
    first = [f"{name}-before-{index:03}" for index in range(jobs)]
    then = [f"{name}-after-{index:03}" for index in range(jobs)]
    await apply_jobs(kube, seen.namespace, first)
    await seen.until("the first pods to be bound", lambda: _bound(seen, first) * 3 >= jobs, _WAIT_SECONDS)
    bound_before = _bound(seen, first)
    ended = time.perf_counter()
    if killed:
        await leading.program.kill()
        await leaves(product, kube, leading)
        await apply_jobs(kube, seen.namespace, then)
    else:
        await leaves(product, kube, leading)
        stopping = asyncio.create_task(leading.program.stop())
        await apply_jobs(kube, seen.namespace, then)
        await stopping
    keys = [(seen.namespace, job) for job in then]
    planned = await seen.until(
        "a new leader to plan", lambda: any(_allocation(seen, key) for key in keys), _WAIT_SECONDS
    )
    mine = {*first, *then}

    def over() -> bool:
        return sum(1 for pod in seen.pods if pod["job"] in mine and pod["node"]) >= len(mine)

    await seen.until("all pods to be bound", over, _WAIT_SECONDS)
    return HandOver(
        killed=killed,
        seconds=planned - ended,
        jobs=len(mine),
        bound_before=bound_before,
        lost=_lost(seen, mine),
        doubled=_doubled(seen),
    )


async def joins(product: Product, kube: KubeClient, replica: Replica) -> None:
    """The replica's address joins the Service."""
    await kube.create(_SLICES, _slice(replica), product.namespace)


async def leaves(product: Product, kube: KubeClient, replica: Replica) -> None:
    """The replica's address leaves the Service."""
    await kube.delete(_SLICES, _slice(replica)["metadata"]["name"], product.namespace)


def _bound(seen: Seen, names: list[str]) -> int:
    wanted = set(names)
    return sum(1 for pod in seen.pods if pod["job"] in wanted and pod["node"])


def _allocation(seen: Seen, key: tuple[str, str]) -> dict[str, Any]:
    job = seen.jobs.items.get(key) or {}
    return (job.get("status") or {}).get("allocation") or {}


def _lost(seen: Seen, names: set[str]) -> int:
    """Jobs that needed another run than their first, or whose pod is not on its planned node."""
    places = {pod["job"]: pod for pod in seen.pods if pod["job"] in names}
    kept = [
        name
        for name, pod in places.items()
        if pod["node"] == pod["planned"] and _allocation(seen, (seen.namespace, name)).get("run") == 1
    ]
    return len(names) - len(kept)


def _doubled(seen: Seen) -> int:
    """GPUs in use beyond those of their node."""
    held = Counter(pod["node"] for pod in seen.pods if pod["node"])
    return sum(max(0, count - GPUS_PER_NODE) for count in held.values())


def _slice(replica: Replica) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"{_SERVICE}-{replica.program.name}",
            "labels": {"kubernetes.io/service-name": _SERVICE},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [replica.host], "conditions": {"ready": True}}],
        "ports": [{"name": "verbs", "port": replica.verbs_port, "protocol": "TCP"}],
    }
