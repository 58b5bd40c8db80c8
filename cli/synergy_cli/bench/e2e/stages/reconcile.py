"""Many TrainingJobs reconciled once: by the operator, by the least that a kopf operator can be, by a client that writes
the same."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from synergy_cli.bench.e2e.load import Seen, apply_jobs, delete_jobs
from synergy_cli.bench.e2e.product import Product
from synergy_cli.bench.e2e.programs import Program
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

_COMPONENTS = ("kube-apiserver", "etcd")
_SECONDS_EACH = 0.1


@dataclass(frozen=True)
class Reconciled:
    """Jobs created and reconciled once: seconds from the first creation, resident megabytes of the program that did it,
    and processor milliseconds for each job, of it and of the control plane until all were done."""

    jobs: int
    created_s: float
    reconciled_s: float
    operator_mb: float
    cpu_ms: Mapping[str, float]


async def measure_reconcile(
    product: Product, kube: KubeClient, seen: Seen, operator: Program, jobs: Sequence[str]
) -> Reconciled:
    """No extender runs: `operator` only reconciles each job and writes its status."""

    def all_looked_at() -> bool:
        return len(seen.jobs.items) == len(jobs) and all(phase == "Queued" for phase in seen.phases())

    before = _cpu_seconds(product, operator)
    begun = time.perf_counter()
    await apply_jobs(kube, seen.namespace, jobs)
    created = time.perf_counter()
    done = await seen.until("all jobs to be queued", all_looked_at, 60 + len(jobs) * _SECONDS_EACH)
    after = _cpu_seconds(product, operator)
    return Reconciled(
        jobs=len(jobs),
        created_s=created - begun,
        reconciled_s=done - begun,
        operator_mb=operator.memory_bytes() / 1e6,
        cpu_ms={name: 1000 * (after[name] - before[name]) / len(jobs) for name in after},
    )


async def measure_bare_reconcile(product: Product, kube: KubeClient, seen: Seen, jobs: Sequence[str]) -> Reconciled:
    """The reference, while the operator does not run. The jobs are gone afterwards."""
    await product.operator.stop()
    found = await _by_reference(product, kube, seen, jobs, product.start_bare_operator)
    await product.start_operator()
    return found


async def compare_reconciles(
    product: Product, kube: KubeClient, seen: Seen, jobs: Sequence[str], *, turns: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The operator and its references by turns."""
    status = product.folder / "status.json"
    await _write_status(kube, seen, jobs[0], status)
    found: dict[str, list[Reconciled]] = {"operator": [], "bare_handler": [], "writer": []}
    for turn in range(turns):
        await product.operator.stop()
        for name, start in (
            ("bare_handler", product.start_bare_operator),
            ("writer", lambda: product.start_writer(status)),
        ):
            found[name].append(await _by_reference(product, kube, seen, jobs, start))
        await product.start_operator()
        found["operator"].append(await _measure_warm(product, kube, seen, jobs, product.operator))
        for name, measured in found.items():
            tell(f"turn {turn + 1}, {name}: {measured[-1]}")
    return {
        **{name: [asdict(one) for one in measured] for name, measured in found.items()},
        "ratio_to_bare_handler": ratio(found["operator"], found["bare_handler"]),
        "ratio_to_writer": ratio(found["operator"], found["writer"]),
    }


async def _by_reference(
    product: Product, kube: KubeClient, seen: Seen, jobs: Sequence[str], start: Callable[[], Awaitable[Program]]
) -> Reconciled:
    reference = await start()
    try:
        return await _measure_warm(product, kube, seen, jobs, reference)
    finally:
        await reference.stop()


async def _measure_warm(
    product: Product, kube: KubeClient, seen: Seen, jobs: Sequence[str], operator: Program
) -> Reconciled:
    """After a first job, with which it begins to watch. The jobs are gone afterwards."""
    first = [f"{jobs[0]}-warm"]
    await measure_reconcile(product, kube, seen, operator, first)
    await delete_jobs(kube, seen, first)
    found = await measure_reconcile(product, kube, seen, operator, jobs)
    await delete_jobs(kube, seen, jobs)
    return found


async def _write_status(kube: KubeClient, seen: Seen, name: str, file: Path) -> None:
    """The status that the operator gives to a new job."""
    await apply_jobs(kube, seen.namespace, [name])
    await seen.until("a job to be queued", lambda: seen.phases() == ["Queued"], 60)
    status = (await kube.get(TRAINING_JOBS, name, seen.namespace))["status"]
    await asyncio.to_thread(file.write_bytes, msgspec.json.encode(status))
    await delete_jobs(kube, seen, [name])


def _cpu_seconds(product: Product, operator: Program) -> dict[str, float]:
    return {"operator": operator.cpu_seconds(), **{name: product.cpu_seconds(name) for name in _COMPONENTS}}


def ratio(measured: Sequence[Reconciled], references: Sequence[Reconciled]) -> float:
    """The median of the turns' ratios."""
    return median(
        one.reconciled_s / reference.reconciled_s for one, reference in zip(measured, references, strict=True)
    )
