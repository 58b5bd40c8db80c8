"""Many TrainingJobs from creation to Running, beside bare pods, and beside a client that makes the same writes."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from synergy_cli.bench.e2e.load import Seen, apply_jobs, bare_pod, delete_jobs, delete_pods, some_at_a_time
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_cli.bench.e2e.programs import Program
from synergy_cli.bench.e2e.references.starter import Starter
from synergy_cli.bench.e2e.requests import written
from synergy_kube import KubeClient
from synergy_kube.resources import PODS, TRAINING_JOBS

_SECONDS_EACH: Final = 0.5
_FIRST: Final = "first"


@dataclass(frozen=True)
class Started:
    """Jobs or pods created at once until all run: seconds, and for each of them processor milliseconds by program and
    writes of the API server by kind (verb, resource)."""

    count: int
    seconds: float
    cpu_ms: Mapping[str, float]
    writes: Mapping[str, float]


@dataclass(frozen=True)
class _Running:
    """The product's processes."""

    extender: Replica
    scheduler: Program


async def compare_starts(
    product: Product, kube: KubeClient, seen: Seen, names: Sequence[str], *, turns: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The product and its references by turns. Neither works while another is measured."""
    found: dict[str, list[Started]] = {"product": [], "writer": [], "bare_pods": []}
    for turn in range(turns):
        running = await _start(product, f"starts-{turn}")
        await apply_jobs(kube, seen.namespace, [_FIRST])
        await seen.until("a job to run", lambda: seen.phases() == ["Running"], 60)
        starter = await Starter.like(kube, await kube.get(TRAINING_JOBS, _FIRST, seen.namespace))
        found["product"].append(
            await _measure(product, running, seen, len(names), partial(apply_jobs, kube, seen.namespace, names))
        )
        await delete_jobs(kube, seen, [_FIRST, *names])
        await _stop(product, running)
        found["writer"].append(await _measure(product, None, seen, len(names), partial(starter.start, names)))
        await delete_jobs(kube, seen, names)
        pods = (partial(kube.create, PODS, bare_pod(name), seen.namespace) for name in names)
        found["bare_pods"].append(await _measure(product, None, seen, len(names), partial(some_at_a_time, pods)))
        await delete_pods(kube, seen, names)
        for name, measured in found.items():
            tell(f"turn {turn + 1}, {name}: {measured[-1]}")
    return {
        **{name: [asdict(one) for one in measured] for name, measured in found.items()},
        "ratio_to_writer": _ratio(found["product"], found["writer"]),
        "ratio_to_bare_pods": _ratio(found["product"], found["bare_pods"]),
    }


async def _start(product: Product, name: str) -> _Running:
    if not product.operator.running:
        await product.start_operator()
    extender = await product.start_extender(f"extender-{name}")
    return _Running(extender, await product.start_scheduler(f"scheduler-{name}", extender.address))


async def _stop(product: Product, running: _Running) -> None:
    await running.scheduler.stop()
    await running.extender.program.stop()
    await product.operator.stop()


async def _measure(
    product: Product, running: _Running | None, seen: Seen, count: int, create: Callable[[], Awaitable[None]]
) -> Started:
    """From the first creation until as many pods more run."""

    def run() -> int:
        return sum(pod["phase"] == "Running" for pod in seen.pods)

    there, cpu, writes = run(), _cpu_seconds(product, running), await asyncio.to_thread(written, product.cluster)
    begun = time.perf_counter()
    await create()
    # a job's phase follows its pod's: where there are jobs, they have to say Running as well
    done = await seen.until(
        "all to run",
        lambda: run() == there + count and all(phase == "Running" for phase in seen.phases()),
        60 + count * _SECONDS_EACH,
    )
    cpu_after, writes_after = _cpu_seconds(product, running), await asyncio.to_thread(written, product.cluster)
    return Started(
        count=count,
        seconds=done - begun,
        cpu_ms={name: 1000 * (cpu_after[name] - cpu[name]) / count for name in cpu},
        writes={kind: (number - writes.get(kind, 0.0)) / count for kind, number in writes_after.items()},
    )


def _cpu_seconds(product: Product, running: _Running | None) -> dict[str, float]:
    found = {name: product.cpu_seconds(name) for name in product.components()}
    if running is not None:
        found |= {
            "operator": product.operator.cpu_seconds(),
            "extender": running.extender.program.cpu_seconds(),
            "scheduler of the chart": running.scheduler.cpu_seconds(),
        }
    return found


def _ratio(measured: Sequence[Started], references: Sequence[Started]) -> float:
    return median(one.seconds / reference.seconds for one, reference in zip(measured, references, strict=True))
