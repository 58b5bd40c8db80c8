"""Declared load and range: one round of 128 GPUs and 200 jobs takes less than 50 ms of a processor, and tenants cost
little beside what they let run.

Measured: 14 to 16 ms; the limit is the product's own. The smallest of several runs counts, so that other work on the
machine does not.
"""

import time
from dataclasses import replace

import pytest

from synergy_cli.bench.workload import a_round_later, among_tenants, cluster
from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan


@pytest.mark.parametrize("mechanism", ["proportional", "tune"])
def test_a_round_of_128_gpus_and_200_jobs_is_planned_in_50_ms(mechanism: str) -> None:
    config = PlanConfig(mechanism=mechanism)
    start = cluster(nodes=16, jobs=200, seed=0)
    snapshot = a_round_later(start, plan(start, config), seed=1)
    seconds = []
    for _ in range(10):
        before = time.process_time()
        plan(snapshot, config)
        seconds.append(time.process_time() - before)
    assert min(seconds) < 0.050, seconds


@pytest.mark.parametrize("lending", [{}, {"V100": 0}])
@pytest.mark.parametrize("policy", ["las", "fifo"])
def test_many_tenants_cost_a_few_plans_without(policy: str, lending: dict[str, int]) -> None:
    """Measured: 4 to 6 times as long with 300 tenants, for twice the running jobs."""
    config = PlanConfig(policy=policy)
    start = cluster(nodes=64, jobs=1000, seed=0)
    without = a_round_later(start, plan(start, config), seed=1)
    shared = among_tenants(without, 300)
    shared = replace(shared, tenants=tuple(replace(tenant, lending=lending) for tenant in shared.tenants))
    seconds: tuple[list[float], list[float]] = ([], [])
    memories = (Memory(), Memory())
    for _ in range(4):
        for snapshot, memory, spent in zip((without, shared), memories, seconds, strict=True):
            before = time.process_time()
            plan(snapshot, config, memory)
            spent.append(time.process_time() - before)
    assert min(seconds[1]) < 12 * min(seconds[0]), seconds
