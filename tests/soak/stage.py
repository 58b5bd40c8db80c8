"""The product beside the cluster, as `bench e2e` starts it: two extender replicas behind a Service."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from chaos.faults.api_server import insist
from soak.size import GPUS_PER_NODE, Disturbance, Kind, Size
from support.on_cluster.namespaces import fresh_namespace
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_cli.bench.e2e.programs import Program
from synergy_cli.bench.e2e.stages.handover import joins, leader, leaves, service
from synergy_devcluster import Cluster, FakeNodes
from synergy_devcluster.node import kwok
from synergy_kube import KubeClient
from synergy_kube.resources import NODES

EXTENDERS = ("extender-0", "extender-1")
_POLICY = {"policy": "las", "mechanism": "tune"}


def fake_nodes(size: Size) -> FakeNodes:
    """The nodes of a soak."""
    return FakeNodes("V100", size.nodes, GPUS_PER_NODE, 96, 512 << 30)


@dataclass
class Stage:
    """What runs. `done` are the disturbances so far, each with its Unix times of begin and end; `problems` in words."""

    product: Product
    kube: KubeClient
    cluster: Cluster
    replicas: list[Replica]
    scheduler: Program
    nodes: list[str]
    done: list[tuple[Disturbance, float, float]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def programs(self) -> list[Program]:
        """The product's processes."""
        return [self.product.operator, *(replica.program for replica in self.replicas), self.scheduler]

    async def disturb(self, disturbance: Disturbance) -> None:
        """Let it happen. What was ended runs again afterwards; where it is not ready in time, that is a problem."""
        begun = time.time()
        try:
            await self._happen(disturbance)
        except click.ClickException as error:
            self.problems.append(f"{disturbance.kind}: {error.message}")
        self.done.append((disturbance, begun, time.time()))

    async def _happen(self, disturbance: Disturbance) -> None:
        match disturbance.kind:
            case Kind.NODES_FAILED:
                await self._nodes_fail(disturbance)
            case Kind.OPERATOR_KILLED | Kind.OPERATOR_RESTARTED:
                await _end(self.product.operator, killed=disturbance.kind is Kind.OPERATOR_KILLED)
                await asyncio.sleep(disturbance.seconds)
                await self.product.start_operator()
            case Kind.SCHEDULER_RESTARTED:
                await _end(self.scheduler, killed=False)
                await asyncio.sleep(disturbance.seconds)
                await self.scheduler.start()
            case _:
                await self._replica_ends(disturbance)

    async def _replica_ends(self, disturbance: Disturbance) -> None:
        """A replica's address leaves the Service as it ends, and joins it when the replica is ready again."""
        leads = await leader(self.product, self.kube, self.replicas)
        follows = disturbance.kind is Kind.FOLLOWER_RESTARTED
        replica = next(one for one in self.replicas if (one is not leads) == follows)
        killed = disturbance.kind is Kind.LEADER_KILLED
        if killed:
            await replica.program.kill()
        await insist(lambda: leaves(self.product, self.kube, replica))
        if not killed:
            await replica.program.stop()
        await asyncio.sleep(disturbance.seconds)
        await replica.program.start()
        await replica.ready()
        await insist(lambda: joins(self.product, self.kube, replica))

    async def _nodes_fail(self, disturbance: Disturbance) -> None:
        names = [self.nodes[index] for index in disturbance.nodes]
        try:
            for name in names:
                await self._annotate(name, "true")
            await asyncio.sleep(disturbance.seconds)
        finally:
            for name in names:
                await self._annotate(name, None)

    async def _annotate(self, node: str, value: str | None) -> None:
        body = {"metadata": {"annotations": {kwok.FAIL_ANNOTATION: value}}}
        await insist(lambda: self.kube.merge_patch(NODES, node, body))

    async def keep_running(self) -> None:
        """Start what has ended by itself. That it did is a problem."""
        for program in self.programs:
            if not program.running:
                self.problems.append(f"{program.name} has ended by itself")
                await program.start()


async def _end(program: Program, *, killed: bool) -> None:
    await (program.kill() if killed else program.stop())


@asynccontextmanager
async def stage(cluster: Cluster, kube: KubeClient, folder: Path, size: Size) -> AsyncIterator[Stage]:
    """The product while it runs. Its processes, its namespace and its rights are gone afterwards."""
    async with fresh_namespace(kube) as home:
        product = Product(cluster, kube, home, folder)
        try:
            await product.install({**_POLICY, "roundSeconds": size.round_s})
            await product.start_operator()
            replicas = [await product.start_extender(name) for name in EXTENDERS]
            async with service(product, kube, replicas) as address:
                scheduler = await product.start_scheduler("scheduler-0", address)
                yield Stage(product, kube, cluster, replicas, scheduler, kwok.node_names(fake_nodes(size)))
        finally:
            await product.close()
