"""The true CPU curve of the example pipelines: min(device rate, limit / cost), under real limits."""

import sys
from collections.abc import Callable

import pytest

from support.job.example import EXAMPLES
from support.job.harness import Harness, at_most


@pytest.mark.parametrize(("millis", "rate"), [(400, 400 / 70), (800, 800 / 70), (1700, 20.0)])
def test_the_cpu_hungry_script(harness: Harness, limit_cpu: Callable[[int], None], millis: int, rate: float) -> None:
    limit_cpu(millis)
    run = harness.run_command([sys.executable, str(EXAMPLES / "cpu_hungry.py")], "--steps", "30")
    assert run.result["outcome"] == "measured", run.output
    assert run.result["steps_per_second"] == at_most(rate)
    assert run.result["cpu_used_millis"] == pytest.approx(run.result["steps_per_second"] * 70, rel=0.1)


@pytest.mark.parametrize(("millis", "rate"), [(60, 12.0), (200, 20.0)])
def test_the_gpu_bound_script(harness: Harness, limit_cpu: Callable[[int], None], millis: int, rate: float) -> None:
    limit_cpu(millis)
    run = harness.run_command([sys.executable, str(EXAMPLES / "gpu_bound.py")], "--steps", "40")
    assert run.result["outcome"] == "measured", run.output
    assert run.result["steps_per_second"] == at_most(rate)
