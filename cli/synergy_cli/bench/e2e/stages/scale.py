"""Memory, planning time and time to start at so many jobs."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from synergy_cli.bench.e2e.load import Seen, apply_jobs, bare_pod, delete_jobs
from synergy_cli.bench.e2e.percentiles import counter, histogram, percentile
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_cli.bench.e2e.programs import Program
from synergy_extender.rounds import Rounds
from synergy_kube import KubeClient
from synergy_kube.resources import PODS

PLAN_SECONDS = "kube_synergy_plan_seconds"
WRITE_SECONDS = "kube_synergy_plan_write_seconds"
ROUNDS = "kube_synergy_rounds"
LATE_ROUNDS = "kube_synergy_late_rounds"
STATUS_WRITES = "kube_synergy_status_writes"
_STARTS = 10
"""So many jobs, and as many bare pods, start one after the other."""
_ROUNDS = 3
_BEFORE_SECONDS = 0.5
_SECONDS_EACH = 0.5


@dataclass(frozen=True)
class Scale:
    """Figures with `jobs` jobs running: seconds until all ran, resident megabytes (10^6) by component, milliseconds of
    one plan() between rounds, seconds from creating one more job to its phase Running (median, 99th percentile), and
    from creating a bare pod of the default scheduler to its phase Running; pods that came to run per second."""

    jobs: int
    all_running_s: float
    memory_mb: Mapping[str, float]
    plan_p50_ms: float | None
    plan_p99_ms: float | None
    start_s: float
    start_p99_s: float
    pod_start_s: float
    pods_per_s: float


async def measure_scale(
    product: Product,
    kube: KubeClient,
    seen: Seen,
    extender: Replica,
    scheduler: Program,
    *,
    jobs: int,
    begun: float,
    there: int = 0,
) -> Scale:
    """The figures once all `jobs` jobs of the namespace run. Those that were not `there` before were applied, or were
    first seen by an extender, at `begun` (time.perf_counter)."""

    def all_run() -> bool:
        phases = seen.phases()
        return len(phases) == jobs and all(phase == "Running" for phase in phases)

    running = await seen.until("all jobs to run", all_run, 60 + jobs * _SECONDS_EACH)
    starts = [await start_one(kube, seen, f"one-more-{index}") for index in range(_STARTS)]
    pods = [await start_pod(kube, seen, f"pod-{index}") for index in range(_STARTS)]
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
        start_p99_s=percentile(starts, 0.99),
        pod_start_s=median(pods),
        pods_per_s=(jobs - there) / (running - begun),
    )


@dataclass(frozen=True)
class Round:
    """What rounds cost with `jobs` jobs running, while one more job after another comes: seconds from creating it to
    its phase Running, mean milliseconds of the plan and of writing it, statuses written by the extender in each from
    the plan to the boundary, and whether all rounds were written before their boundaries."""

    jobs: int
    starts: int
    start_p50_s: float
    start_p99_s: float
    plan_ms: float | None
    write_ms: float | None
    status_writes: float
    in_time: bool


async def measure_rounds(kube: KubeClient, seen: Seen, extender: Replica, rounds: Rounds, *, jobs: int) -> Round:
    """The next three rounds."""
    index = rounds.due(time.time()) + 1
    await asyncio.sleep(rounds.plan_time(index) - time.time() - _BEFORE_SECONDS)
    first = await extender.metrics()
    starts: list[float] = []
    writes = 0.0
    for number in range(index, index + _ROUNDS):
        await asyncio.sleep(rounds.plan_time(number) - time.time() - _BEFORE_SECONDS)
        before = counter(await extender.metrics(), STATUS_WRITES)
        while time.time() < rounds.start(number):
            starts.append(await start_one(kube, seen, f"in-round-{number}-{len(starts)}"))
        writes += counter(await extender.metrics(), STATUS_WRITES) - before
    last = await extender.metrics()

    def mean(name: str) -> float | None:
        return histogram(last, name, mode="round").since(histogram(first, name, mode="round")).mean

    planned = counter(last, ROUNDS) - counter(first, ROUNDS)
    return Round(
        jobs=jobs,
        starts=len(starts),
        start_p50_s=percentile(starts, 0.5),
        start_p99_s=percentile(starts, 0.99),
        plan_ms=_milliseconds(mean(PLAN_SECONDS)),
        write_ms=_milliseconds(mean(WRITE_SECONDS)),
        status_writes=writes / _ROUNDS,
        in_time=planned >= _ROUNDS and counter(last, LATE_ROUNDS) == counter(first, LATE_ROUNDS),
    )


async def start_one(kube: KubeClient, seen: Seen, name: str) -> float:
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
