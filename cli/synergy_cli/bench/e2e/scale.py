"""Memory, planning time and time to start at so many jobs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from synergy_cli.bench.e2e.load import Seen, apply_jobs, bare_pod, delete_jobs
from synergy_cli.bench.e2e.percentiles import histogram
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_cli.bench.e2e.programs import Program
from synergy_kube import KubeClient
from synergy_kube.resources import PODS

PLAN_SECONDS = "kube_synergy_plan_seconds"
ROUNDS = "kube_synergy_rounds"


@dataclass(frozen=True)
class Scale:
    """Figures with `jobs` jobs running: seconds until all ran, resident megabytes (10^6) by component, milliseconds of
    one plan() between rounds, seconds from creating one more job to its phase Running, and from creating a bare pod of
    the default scheduler to its phase Running."""

    jobs: int
    all_running_s: float
    memory_mb: Mapping[str, float]
    plan_p50_ms: float | None
    plan_p99_ms: float | None
    start_s: float
    pod_start_s: float


async def measure_scale(
    product: Product,
    kube: KubeClient,
    seen: Seen,
    extender: Replica,
    scheduler: Program,
    *,
    jobs: int,
    begun: float,
    repeats: int,
) -> Scale:
    """The figures once all `jobs` jobs of the namespace run, which were applied, or were first seen by an extender, at
    `begun` (time.perf_counter)."""

    def all_run() -> bool:
        phases = seen.phases()
        return len(phases) == jobs and all(phase == "Running" for phase in phases)

    running = await seen.until("all jobs to run", all_run, 600)
    starts = [await _start_one(kube, seen, f"one-more-{index}") for index in range(repeats)]
    pods = [await start_pod(kube, seen, f"pod-{index}") for index in range(repeats)]
    plans = histogram(await extender.metrics(), PLAN_SECONDS, mode="fill")
    memory = {
        "operator": product.operator.memory_bytes(),
        "extender": extender.program.memory_bytes(),
        "scheduler": scheduler.memory_bytes(),
    }
    return Scale(
        jobs=jobs,
        all_running_s=running - begun,
        memory_mb={name: size / 1e6 for name, size in memory.items()},
        plan_p50_ms=_milliseconds(plans.percentile(0.5)),
        plan_p99_ms=_milliseconds(plans.percentile(0.99)),
        start_s=median(starts),
        pod_start_s=median(pods),
    )


async def _start_one(kube: KubeClient, seen: Seen, name: str) -> float:
    begun = time.perf_counter()
    await apply_jobs(kube, seen.namespace, [name])
    key = (seen.namespace, name)
    done = await seen.until(
        f"{name} to run", lambda: ((seen.jobs.items.get(key) or {}).get("status") or {}).get("phase") == "Running", 120
    )
    await delete_jobs(kube, seen, [name])
    return done - begun


async def start_pod(kube: KubeClient, seen: Seen, name: str, *, gpus: int = 1) -> float:
    """Seconds from creating a bare pod of the default scheduler to its phase Running. It is gone afterwards."""
    begun = time.perf_counter()
    await kube.create(PODS, bare_pod(name, gpus=gpus), seen.namespace)
    key = (seen.namespace, name)
    done = await seen.until(f"{name} to run", lambda: (seen.pods.items.get(key) or {}).get("phase") == "Running", 120)
    await kube.delete(PODS, name, seen.namespace, grace_seconds=0)
    await seen.until(f"{name} to be gone", lambda: key not in seen.pods.items, 120)
    return done - begun


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds
