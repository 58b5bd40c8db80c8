"""One soak: load, disturbances, samples, observers, report."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import click

from chaos.faults.api_server import UNREACHABLE
from soak.doubles import Doubles
from soak.load import Busy, Load
from soak.report import Seen, report
from soak.samples import Samples
from soak.size import Size, disturbances
from soak.stage import Stage, stage
from support.job.fake_training import FakeTraining
from support.on_cluster.namespaces import fresh_namespace
from support.on_cluster.observer import Observer
from support.waiting import eventually
from synergy_cli.bench.e2e.load import seen_namespace
from synergy_cli.bench.e2e.machine import machine
from synergy_cli.bench.e2e.stages.scale import start_pod
from synergy_devcluster import Cluster
from synergy_kube import KubeClient

_BARE_PODS = "soak-bare-pods"
_LOOKS = 240
"""So many samples of memory and load in a soak."""
_LOOK_LEAST_S, _LOOK_MOST_S = 2.0, 15.0
_PROBES = 120


async def soak(cluster: Cluster, kube: KubeClient, folder: Path, size: Size, tell: Callable[[str], None]) -> Any:
    """The report. Everything that it makes in the cluster is gone afterwards."""
    about = machine()
    async with stage(cluster, kube, folder, size) as product, AsyncExitStack() as stack:
        space = await stack.enter_async_context(fresh_namespace(kube))
        observer = await stack.enter_async_context(Observer(kube))
        doubles = await stack.enter_async_context(Doubles(kube, space))
        training = await stack.enter_async_context(FakeTraining(kube, space, round_s=size.round_s))
        run = _Run(product, Load(kube, space, training, size), size, tell)
        await run.all()
        seen = Seen(
            size=asdict(size) | {"nodes": size.nodes, "life_s": size.life_s},
            machine=about,
            begun=run.begun,
            steady=run.steady,
            reached=run.reached,
            ended=run.ended,
            arrived=len(run.load.arrived),
            runs=run.load.runs(),
            lost=sorted(run.load.unfinished),
            doubled=[*(text for text in observer.broken if "half-bound" not in text), *doubles.broken],
            half_bound=_last_of_each(text for text in observer.broken if "half-bound" in text),
            problems=product.problems,
            bindings=observer.bindings,
            starts=run.load.starts(run.steady),
            bare_pods=run.bare_pods,
            busy=run.busy,
            samples=run.samples.found,
            disturbances=product.done,
        )
    return report(seen)


def _last_of_each(half_bound: Iterable[str]) -> list[str]:
    """Of what is told of a gang again and again, the last."""
    return list({text.partition(" half-bound")[0]: text for text in half_bound}.values())


class _Run:
    """Unix times: `begun` with the first job, `steady` once the first jobs had started or their time was over, `ended`
    with the last arrival. `reached` tells whether they had."""

    def __init__(self, product: Stage, load: Load, size: Size, tell: Callable[[str], None]) -> None:
        self.begun = self.steady = self.ended = 0.0
        self.reached = False
        self.load = load
        self.busy: list[Busy] = []
        self.bare_pods: list[tuple[float, float]] = []
        self._product = product
        self._size = size
        self._tell = tell
        self._look_s = min(max(_LOOK_LEAST_S, size.seconds / _LOOKS), _LOOK_MOST_S)
        self.samples = Samples(product.cluster, lambda: product.programs, self._look_s)

    async def all(self) -> None:
        """The soak, from its first job to its last."""
        self.begun = time.time()
        until = self.begun + self._size.seconds
        async with _meanwhile(self.samples.run(), self._look_at_load()):
            async with _meanwhile(self.load.run()):
                await self._first_jobs()
                self.steady = time.time()
                started = "all have started" if self.reached else "not all have started"
                self._tell(f"{len(self.load.arrived)} jobs after {self.steady - self.begun:.0f} s: {started}")
                async with _meanwhile(self._probe()):
                    await self._disturb(until)
                    await asyncio.sleep(max(0.0, until - time.time()))
            self.ended = time.time()
            await self._product.keep_running()
            self._tell(f"no job arrives any more; {len(self.load.unfinished)} jobs end")
            await self.load.drain(self._size.drain_s)
        self._tell(f"{len(self.load.arrived)} jobs arrived, {len(self.load.unfinished)} have not ended")

    async def _first_jobs(self) -> None:
        """Until the first jobs have started, or their time is over."""

        async def reached() -> bool:
            return bool(self.load.arrived) and self.load.all_started

        with suppress(AssertionError):  # a product that is too slow for it is soaked as it is
            self.reached = await eventually(
                reached, seconds=self._size.at_first_s, what="the first jobs to start", every=1.0
            )

    async def _disturb(self, until: float) -> None:
        """One after another. Those that would come in the last tenth are left out."""
        last = until - 0.1 * self._size.seconds
        for one in disturbances(self._size):
            await asyncio.sleep(max(0.0, self.steady + one.at - time.time()))
            if time.time() > last:
                return
            await self._product.keep_running()
            self._tell(f"after {time.time() - self.begun:.0f} s: {one.kind} for {one.seconds:.0f} s")
            await self._product.disturb(one)

    async def _look_at_load(self) -> None:
        while True:
            self.busy.append(self.load.busy())
            await asyncio.sleep(self._look_s)

    async def _probe(self) -> None:
        """Bare pods of the default scheduler, one after the other: what the cluster itself needs for a start."""
        every_s = max(_LOOK_LEAST_S, self._size.seconds / _PROBES)
        async with seen_namespace(self._product.kube, _BARE_PODS) as seen:
            for index in count():
                at = time.time()
                with suppress(click.ClickException, *UNREACHABLE):  # this one tells nothing
                    seconds = await start_pod(self._product.kube, seen, f"pod-{index:05}", gpus=0)
                    self.bare_pods.append((at, seconds))
                await asyncio.sleep(every_s)


@asynccontextmanager
async def _meanwhile(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Endless work that is cancelled at the end. An error of it ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
        yield
        for task in tasks:
            task.cancel()
