"""Under a real CPU limit, as the kubelet sets it: the rate is what the limit allows, by construction."""

import textwrap
from collections.abc import Callable

import pytest

from support.job.harness import Harness, at_most

COST_MS = 20
PIPELINE = f"""
    import time, synergy_job
    paid_until = time.process_time()
    for _ in synergy_job.iterate(range(100)):
        paid_until += {COST_MS} / 1000
        while time.process_time() < paid_until:
            pass
"""


@pytest.mark.parametrize("millis", [200, 400, 600])
def test_a_pipeline_of_known_cost(harness: Harness, limit_cpu: Callable[[int], None], millis: int) -> None:
    limit_cpu(millis)
    run = harness.run(PIPELINE, "--steps", "40")
    assert run.result["outcome"] == "measured", run.output
    assert run.result["steps_per_second"] == at_most(millis / COST_MS)
    assert run.result["cpu_used_millis"] == pytest.approx(run.result["steps_per_second"] * COST_MS, rel=0.1)


def test_cpu_use_is_measured_where_the_limit_does_not_bind(harness: Harness, limit_cpu: Callable[[int], None]) -> None:
    limit_cpu(1000)
    paced = """
        moment += 0.1
        time.sleep(max(0, moment - time.monotonic()))
    """
    script = (
        "import time\nmoment = time.monotonic()\n"
        + textwrap.dedent(PIPELINE)
        + textwrap.indent(textwrap.dedent(paced), "    ")
    )
    run = harness.run(script, "--steps", "20")
    assert run.result["steps_per_second"] == at_most(10)
    assert run.result["cpu_used_millis"] == pytest.approx(run.result["steps_per_second"] * COST_MS, rel=0.15)
