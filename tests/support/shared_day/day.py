"""A day on a real API server: Tenants, the jobs as they come, and their training on fake nodes."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import aiohttp

from support.job.fake_training import FakeTraining, Training
from support.on_cluster.jobs import GIB, matrix, restricted_template, submit
from support.on_cluster.namespaces import fresh_namespace
from support.shared_day.figures import POLICY
from support.shared_day.jobs import speeds, trace
from support.shared_day.observer import TenantObserver
from support.shared_day.size import TYPES, Size
from support.waiting import eventually
from synergy_cli.bench.e2e.product import Product
from synergy_core.model.snapshot import Tenant
from synergy_devcluster import Cluster
from synergy_kube import Conflict, KubeClient
from synergy_kube.resources import GPU_POOLS, NODES, TENANTS
from synergy_simulator.inputs.traces import TraceJob

Json = dict[str, Any]
_NO_PROTECTION = {"payback": 0, "minimumRunSeconds": 0}
_AFTER_S, _AFTER = 400.0, 1.2
"""The last job has ended so long, or so many days, after the day."""
_READY_S = 5.0
_AGAIN_S = 0.5
_LABEL = "tests.kube-synergy.dev/day"


@dataclass(frozen=True)
class Day:
    """What was seen of a day."""

    begin: float
    """Unix time at which the trace's clock began."""
    jobs: Sequence[TraceJob]
    seen: Mapping[str, Training]
    observer: TenantObserver

    def waits(self, *, later: bool) -> float:
        """Seconds from the moment a job's first run could have trained, or later ones, until it did; the mean."""
        found = [wait for one in self.seen.values() for wait in (one.waits[1:] if later else one.waits[:1])]
        return fmean(found or [0.0])

    def document(self) -> Json:
        """All of it, to look into afterwards. Times are Unix seconds."""
        jobs = [
            {
                "name": job.name,
                "tenant": job.tenant,
                "gpus": job.gpus,
                "arrival": job.arrival_s,
                "finished": one.finished,
                "waits": one.waits,
                "runs": [asdict(span) for span in one.spans],
            }
            for job, one in ((job, self.seen[job.name]) for job in self.jobs)
        ]
        return {"begin": self.begin, "jobs": jobs}


@asynccontextmanager
async def product(cluster: Cluster, kube: KubeClient, folder: Path, round_s: int) -> AsyncIterator[None]:
    """The product's processes beside the cluster, each with a service account of its own."""
    async with fresh_namespace(kube) as home:
        made = Product(cluster, kube, home, folder)
        try:
            await made.install({**POLICY, "roundSeconds": round_s, "preemption": _NO_PROTECTION})
            await made.start_operator()
            extender = await made.start_extender("extender-0")
            await made.start_scheduler("scheduler-0", extender.address)
            yield
        finally:
            await made.close()


async def nodes(kube: KubeClient, size: Size) -> dict[str, str]:
    """The fake nodes that the day takes, with the types that they have for it."""
    items = (await kube.list(NODES, label_selector="type=kwok"))["items"]
    free = iter(sorted(item["metadata"]["name"] for item in items))
    return {next(free): gpu_type for gpu_type, count in size.nodes.items() for _ in range(count)}


async def lived(kube: KubeClient, size: Size, types_of_nodes: Mapping[str, str]) -> Day:
    """Let the day pass. `types_of_nodes` are the nodes that jobs may use, with the type that each has for the day."""
    tree = size.tenants()
    async with AsyncExitStack() as stack:
        spaces = {team: await stack.enter_async_context(fresh_namespace(kube)) for team in size.teams}
        await stack.enter_async_context(_pools(kube, types_of_nodes))
        await stack.enter_async_context(_tenants(kube, tree, spaces))
        await asyncio.sleep(_READY_S)  # no condition tells that plans have read them all
        training = {
            team: await stack.enter_async_context(FakeTraining(kube, space, round_s=size.round_s))
            for team, space in spaces.items()
        }
        observer = await stack.enter_async_context(
            TenantObserver(
                kube, tree, {space: team for team, space in spaces.items()}, types_of_nodes,
                within_s=1.1 * size.round_s + 2 + _READY_S,
            )
        )  # fmt: skip
        begin = (time.time() // size.round_s + 1) * size.round_s
        jobs = trace(size, begin)
        await _submitted(kube, jobs, spaces, training)
        try:
            await _all_done(training.values(), begin + size.day_s + max(_AFTER_S, _AFTER * size.day_s) - time.time())
        except AssertionError as error:
            raise AssertionError(f"{error}; the observer saw {len(observer.broken)} broken promises") from None
    seen = {name: one for each in training.values() for name, one in each.jobs.items()}
    return Day(begin, jobs, seen, observer)


async def _submitted(
    kube: KubeClient,
    jobs: Iterable[TraceJob],
    spaces: Mapping[str, str],
    training: Mapping[str, FakeTraining],
) -> None:
    async with asyncio.TaskGroup() as group:
        for job in jobs:
            await asyncio.sleep(max(0.0, job.arrival_s - time.time()))
            training[job.tenant].expect(job.name, float(job.steps or 0))
            group.create_task(_insist(kube, spaces[job.tenant], job))


async def _insist(kube: KubeClient, space: str, job: TraceJob) -> None:
    """Submit the job, again where no answer came."""
    while True:
        try:
            await submit(kube, space, job.name, **_spec(job))
        except Conflict:
            return  # the answer was lost
        except (aiohttp.ClientError, TimeoutError, OSError):
            await asyncio.sleep(_AGAIN_S)
        else:
            return


def _spec(job: TraceJob) -> dict[str, Any]:
    fast = speeds(job)
    return {
        "gpus": job.gpus,
        "gpuTypes": list(TYPES),
        "steps": job.steps,
        "preemption": "Signal",
        "profile": {"mode": "Provided", "matrices": [matrix(one, {1000: fast[one]}, GIB) for one in TYPES]},
        "template": restricted_template(["train"], nodeSelector={"type": "kwok"}, terminationGracePeriodSeconds=0),
    }


async def _all_done(training: Iterable[FakeTraining], seconds: float) -> None:
    every = list(training)

    async def done() -> bool:
        return all(one.done for one in every)

    try:
        await eventually(done, seconds=seconds, what="all jobs to succeed", every=0.5)
    except AssertionError:
        left = [job for one in every for job in one.jobs.values() if job.finished is None]
        raise AssertionError(f"{len(left)} jobs did not end in time, such as {left[:3]}") from None


@asynccontextmanager
async def _pools(kube: KubeClient, types_of_nodes: Mapping[str, str]) -> AsyncIterator[None]:
    """GPUPools that give the nodes the day's types."""
    for node, gpu_type in types_of_nodes.items():
        await kube.merge_patch(NODES, node, {"metadata": {"labels": {_LABEL: gpu_type}}})
    for gpu_type in TYPES:
        spec = {"gpuType": gpu_type, "nodeSelector": {_LABEL: gpu_type}}
        await kube.create(GPU_POOLS, {"metadata": {"name": gpu_type}, "spec": spec})
    yield
    for gpu_type in TYPES:
        await kube.delete(GPU_POOLS, gpu_type)
    for node in types_of_nodes:
        await kube.merge_patch(NODES, node, {"metadata": {"labels": {_LABEL: None}}})


@asynccontextmanager
async def _tenants(kube: KubeClient, tree: Sequence[Tenant], spaces: Mapping[str, str]) -> AsyncIterator[None]:
    for tenant in tree:
        await kube.create(TENANTS, {"metadata": {"name": tenant.name}, "spec": _tenant_spec(tenant, spaces)})
    yield
    for tenant in tree:
        await kube.delete(TENANTS, tenant.name)


def _tenant_spec(tenant: Tenant, spaces: Mapping[str, str]) -> dict[str, Any]:
    amounts = {
        "guarantee": tenant.guarantee, "limit": tenant.limit, "borrowing": tenant.borrowing, "lending": tenant.lending
    }  # fmt: skip
    found: dict[str, Any] = {name: dict(amount) for name, amount in amounts.items() if amount}
    if tenant.parent is not None:
        found["parent"] = tenant.parent
    if tenant.name in spaces:
        found["namespaces"] = [spaces[tenant.name]]
    return found
