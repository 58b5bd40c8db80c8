"""The order of the measurements."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from synergy_cli.bench.e2e.load import GPUS_PER_NODE, Seen, apply_jobs, delete_jobs, seen_namespace
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_cli.bench.e2e.stages.binding import measure_binding
from synergy_cli.bench.e2e.stages.filtering import Caller, Filtering, filter_body, summary
from synergy_cli.bench.e2e.stages.handover import HandOver, leader, measure_hand_over, service
from synergy_cli.bench.e2e.stages.planning import filter_while_planning
from synergy_cli.bench.e2e.stages.reconcile import compare_reconciles, measure_bare_reconcile, measure_reconcile
from synergy_cli.bench.e2e.stages.scale import measure_rounds, measure_scale
from synergy_cli.bench.e2e.stages.starts import compare_starts
from synergy_cli.bench.e2e.version import Version
from synergy_devcluster import Cluster
from synergy_extender.rounds import Rounds
from synergy_kube import KubeClient
from synergy_kube.resources import NAMESPACES

_OWN = "kube-synergy-bench"
_ROUND_SECONDS = 60
_POLICY = {"policy": "las", "mechanism": "tune", "roundSeconds": _ROUND_SECONDS}
_NAMES = 1000
_CALLS = 2000
_EVERY_SECONDS = 0.005
_SPARE_GPUS = 96
"""For jobs that come while the largest number runs."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured with."""

    jobs: int
    pods: int
    turns: int

    @property
    def nodes(self) -> int:
        """Fake nodes for the largest number of jobs and for those that come beside them."""
        return math.ceil((max(self.jobs, self.pods) + _SPARE_GPUS) / GPUS_PER_NODE)

    @property
    def steps(self) -> list[int]:
        """Numbers of jobs below the largest."""
        return [count for count in (10, 100) if count < self.jobs]

    @property
    def hand_over(self) -> int:
        """Jobs that come before, and as many after, the leader's end."""
        return min(24, self.jobs)


async def measure(
    cluster: Cluster,
    kube: KubeClient,
    folder: Path,
    sizes: Sizes,
    *,
    stage: str,
    version: Version,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """All figures, or those of one stage. Raises ClickException where something does not come about."""
    product = Product(cluster, kube, _OWN, folder, version)
    await kube.create(NAMESPACES, {"metadata": {"name": _OWN}})
    try:
        await product.install(_POLICY)
        await product.start_operator()
        run = _Run(product, kube, sizes, tell)
        stages = {"all": run.all, "reconcile": run.reconcile, "starts": run.starts}
        return await stages[stage]()
    finally:
        await product.close()
        await kube.delete(NAMESPACES, _OWN)


class _Run:
    def __init__(self, product: Product, kube: KubeClient, sizes: Sizes, tell: Callable[[str], None]) -> None:
        self._product = product
        self._kube = kube
        self._sizes = sizes
        self._tell = tell

    async def all(self) -> dict[str, Any]:
        extender = await self._product.start_extender("extender-0")
        self._tell(
            f"binding: {self._sizes.turns} times {self._sizes.pods} pods with the extender, without, with a bare one"
        )
        async with seen_namespace(self._kube, "bench-binding") as seen:
            binding = await measure_binding(
                self._product, self._kube, seen, extender, pods=self._sizes.pods, turns=self._sizes.turns
            )
        self._tell(str(binding))
        scales = await self._small(extender)
        async with seen_namespace(self._kube, "bench-large") as seen:
            large = await self._large(seen)
        return {
            "sizes": asdict(self._sizes),
            "binding": asdict(binding),
            **large,
            "scale": [*scales, large["scale"]],
        }

    async def reconcile(self) -> dict[str, Any]:
        """The operator alone, beside its references."""
        names = [f"job-{index:05}" for index in range(self._sizes.jobs)]
        async with seen_namespace(self._kube, "bench-reconcile") as seen:
            found = await compare_reconciles(
                self._product, self._kube, seen, names, turns=self._sizes.turns, tell=self._tell
            )
        return {"sizes": asdict(self._sizes), "reconcile": found}

    async def starts(self) -> dict[str, Any]:
        """Jobs from creation to Running, beside their references."""
        names = [f"job-{index:05}" for index in range(self._sizes.jobs)]
        async with seen_namespace(self._kube, "bench-starts") as seen:
            found = await compare_starts(
                self._product, self._kube, seen, names, turns=self._sizes.turns, tell=self._tell
            )
        return {"sizes": asdict(self._sizes), "starts": found}

    async def _small(self, extender: Replica) -> list[dict[str, Any]]:
        scheduler = await self._product.start_scheduler("scheduler", extender.address)
        scales = []
        async with seen_namespace(self._kube, "bench-small") as seen:
            for count in self._sizes.steps:
                self._tell(f"{count} jobs")
                begun = time.perf_counter()
                there = len(seen.jobs.items)
                await apply_jobs(self._kube, seen.namespace, [f"job-{index:05}" for index in range(there, count)])
                scale = await measure_scale(
                    self._product,
                    self._kube,
                    seen,
                    extender,
                    scheduler,
                    jobs=count,
                    begun=begun,
                    there=there,
                )
                self._tell(str(scale))
                scales.append(asdict(scale))
            await delete_jobs(self._kube, seen, [name for _, name in list(seen.jobs.items)])
        await scheduler.stop()
        await extender.program.stop()
        return scales

    async def _large(self, seen: Seen) -> dict[str, Any]:
        names = [f"job-{index:05}" for index in range(self._sizes.jobs)]
        self._tell(f"{len(names)} jobs: reconciled once")
        by_bare = await measure_bare_reconcile(self._product, self._kube, seen, names)
        self._tell(f"by a bare kopf handler: {by_bare}")
        reconciled = await measure_reconcile(self._product, self._kube, seen, self._product.operator, names)
        self._tell(str(reconciled))
        begun = time.perf_counter()
        extender = await self._product.start_extender("extender-1")
        scheduler = await self._product.start_scheduler("scheduler", extender.address)
        scale = await measure_scale(
            self._product,
            self._kube,
            seen,
            extender,
            scheduler,
            jobs=len(names),
            begun=begun,
        )
        self._tell(str(scale))
        rounds = Rounds(_ROUND_SECONDS)
        in_round = await measure_rounds(self._kube, seen, extender, rounds, jobs=len(names))
        self._tell(str(in_round))
        _, pod = next(iter(seen.pods.items))
        body = await filter_body(self._kube, seen.namespace, pod, _NAMES)
        quiet = await self._quiet_filter(extender.address, body)
        async with self._product.bare_extender("bare-extender-filter") as address:
            bare = await self._quiet_filter(address, body)
            self._tell(f"filter, quiet: {quiet}, of a bare extender: {bare}")
            planning = await filter_while_planning(
                self._product, extender, address, body, rounds, names=_NAMES, every_s=_EVERY_SECONDS
            )
        self._tell(str(planning))
        await scheduler.stop()
        hand_overs = await self._hand_overs(seen, extender)
        return {
            "reconcile": asdict(reconciled),
            "reconcile_bare": asdict(by_bare),
            "scale": asdict(scale),
            "round": asdict(in_round),
            "filter_quiet": asdict(quiet),
            "filter_bare": asdict(bare),
            "filter_while_planning": asdict(planning.filter),
            "filter_bare_while_planning": asdict(planning.filter_bare),
            "round_plan_ms": planning.plan_ms,
            "hand_over": [asdict(item) for item in hand_overs],
        }

    async def _quiet_filter(self, address: str, body: bytes) -> Filtering:
        """Calls while nothing else happens."""
        caller = Caller(self._product, address, body, every_s=_EVERY_SECONDS)
        await caller.ready()
        return summary(await caller.calls(_CALLS), _NAMES)

    async def _hand_overs(self, seen: Seen, first: Replica) -> list[HandOver]:
        """A crash, then an orderly end, each with a fresh replica in reserve."""
        replicas = [first]
        found = []
        for index, killed in enumerate((True, False)):
            replicas = [replica for replica in replicas if replica.program.running]
            replicas.append(await self._product.start_extender(f"extender-{2 + index}"))
            async with service(self._product, self._kube, replicas) as address:
                scheduler = await self._product.start_scheduler(f"scheduler-{2 + index}", address)
                leading = await leader(self._product, self._kube, replicas)
                found.append(
                    await measure_hand_over(
                        self._product, self._kube, seen, leading,
                        name=f"hand-over-{index}", jobs=self._sizes.hand_over, killed=killed,
                    )
                )  # fmt: skip
                await scheduler.stop()
            self._tell(str(found[-1]))
        return found
