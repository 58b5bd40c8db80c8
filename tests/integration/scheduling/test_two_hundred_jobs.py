"""200 jobs on 50 fake nodes of two GPU types, through the real kube-scheduler and the extender."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from support.on_cluster.jobs import GIB, fake_template, matrix, submit
from support.on_cluster.observer import Observer
from support.waiting import eventually
from synergy_kube import KubeClient, Reflector
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.integration

SIZES = [1] * 120 + [2] * 40 + [4] * 20 + [8] * 12 + [16] * 8
"""504 GPUs for the cluster's 400: some jobs have to wait."""


def spec_of(gpus: int, gpu_type: str, chance: random.Random) -> dict[str, Any]:
    """A job of which one in two is hungry for CPU (share: 3 CPUs a GPU), none for memory."""
    knee = chance.choice([2, 9])
    curve = {1000 * gpus * cpus: gpus * min(1.0, cpus / knee) for cpus in (1, 2, 3, 6, 9)}
    return {
        "gpus": gpus,
        "steps": 100,
        "gpuTypes": [gpu_type],
        "profile": {"mode": "Provided", "matrices": [matrix(gpu_type, curve, gpus * 8 * GIB)]},
        "template": fake_template(chance.randint(3, 12)),
    }


@pytest.mark.timeout(420)
async def test_two_hundred_jobs_are_planned_bound_and_completed(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]]
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=10)
    chance = random.Random(7)
    sizes = chance.sample(SIZES, len(SIZES))
    jobs = Reflector(kube, TRAINING_JOBS, namespace=namespace)
    async with Observer(kube) as observer:
        following = asyncio.create_task(jobs.run())
        for index, gpus in enumerate(sizes):
            spec = spec_of(gpus, ("V100", "T4")[index % 2], chance)
            await submit(kube, namespace, f"job-{index:03}", **spec)

        async def all_done() -> bool:
            phases = [(job.get("status") or {}).get("phase") for job in jobs]
            assert "Failed" not in phases
            return len(phases) == len(sizes) and set(phases) == {"Succeeded"}

        await eventually(all_done, seconds=300, what="all 200 jobs to succeed", every=0.5)
        following.cancel()
    assert observer.broken == []
    runs = [job["status"]["service"]["run"] for job in jobs]
    assert max(runs) == 1, "first in, first out displaces nobody"
    assert observer.bindings >= len(sizes)
    given = [job["status"]["allocation"] for job in jobs]
    gains = [item["stepsPerSecond"] / item["proportionalStepsPerSecond"] for item in given]
    assert min(gains) > 1 - 1e-9, "nobody runs slower than at its proportional share"
    assert sum(gain > 1.01 for gain in gains) > len(jobs.items) / 10, "tune speeds CPU-hungry jobs up"
