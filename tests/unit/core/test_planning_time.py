"""Declared load and range: one round of 128 GPUs and 200 jobs takes less than 50 ms of a processor.

Measured: 14 to 16 ms; the limit is the product's own. The smallest of several runs counts, so that other work on the
machine does not.
"""

import time

import pytest

from synergy_cli.bench.workload import a_round_later, cluster
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
