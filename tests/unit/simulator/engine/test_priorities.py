"""Jobs of higher classes go first in a simulation, also in rounds that it does not plan one by one."""

from pathlib import Path

import pytest

from support.simulator.simulation import flat, server
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.workloads.workload import build_workload

TRACE = """job_id,arrival_s,gpus,model,steps,tenant,priority
low,0,1,flat,300,red,0
low2,1,1,flat,300,red,0
high,5,1,flat,100,red,7
other,6,1,flat,100,blue,9
"""


@pytest.mark.parametrize(
    ("across", "order"),
    [(False, ["high", "low", "low2", "other"]), (True, ["other", "high", "low", "low2"])],
)
@pytest.mark.parametrize("reuse", [False, True])
def test_the_column_priority_puts_jobs_first(tmp_path: Path, across: bool, order: list[str], reuse: bool) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    workload = build_workload(read_trace(path), flat(), server(1))
    options = Options.of(
        policy="fifo", mechanism="proportional", round_s=10.0, priorities_across=across, reuse_plans=reuse
    )
    runs = simulate(workload, options).runs
    assert [run.task.name for run in sorted(runs, key=lambda run: run.finish_s or 0.0)] == order
