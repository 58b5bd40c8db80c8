"""What spreading costs by GPU type, and policies that see it (Gavel, section 3.1)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.simulator.simulation import server, traced
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.profiles import ProfileTable, flat_profile, read_profiles
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.workloads.workload import build_workload

TABLE = {
    "v100": {"('m', 1)": {"null": 1.0}, "('m', 2)": {"null": 1.0}, "('m', 4)": {"null": 1.0}},
    "k80": {"('m', 1)": {"null": 0.5}, "('m', 2)": {"null": 0.0}, "('m', 4)": {"null": 0.5}},
    "v100_unconsolidated": {"('m', 2)": {"null": 0.2}, "('m', 4)": {"null": 0.25}},
    "k80_unconsolidated": {"('m', 2)": {"null": 0.3}, "('m', 4)": {"null": 0.6}},
}


@pytest.fixture
def table(tmp_path: Path) -> ProfileTable:
    (tmp_path / "p.json").write_text(json.dumps(TABLE))
    return read_profiles(tmp_path / "p.json")


def _simulated(jobs: Sequence[TraceJob], cluster: Cluster, table: ProfileTable, **options: Any) -> Outcome:
    workload = build_workload(jobs, table, cluster, unconsolidated=True)
    return simulate(workload, Options.of(policy="max-min-fairness", mechanism="proportional", round_s=100.0, **options))


def test_the_table_tells_by_type_what_is_left_of_a_jobs_speed(table: ProfileTable) -> None:
    assert table.spread == {
        ("m", "v100", 2): 0.2,
        ("m", "v100", 4): 0.25,
        ("m", "k80", 4): pytest.approx(1.2),
    }, "nothing where a job does not run on the fewest"
    jobs = [traced("two", 0, 100, gpus=2, model="m"), traced("told", 0, 100, gpus=2, model="m", spread_speed=0.9)]
    for unconsolidated, parts in ((True, [{"V100": 0.2}, {}]), (False, [{}, {}])):
        tasks = build_workload(jobs, table, server(2, nodes=2), unconsolidated=unconsolidated).tasks
        assert [task.spread_speeds for task in tasks] == parts
        assert [task.spread_speed for task in tasks] == [None, 0.9]


def test_the_fewest_nodes_are_counted_by_type() -> None:
    pools = [
        SimulatedPool(
            name=f"{kind}{n}", gpu_type=kind, nodes=nodes, gpus_per_node=n, cpus_per_node=3, memory_gib_per_node=9
        )
        for kind, nodes, n in (("V100", 3, 2), ("K80", 1, 8), ("V100", 1, 4))
    ]
    assert Cluster(tuple(pools)).fewest_nodes(4) == {"V100": 1, "K80": 1}
    assert Cluster(tuple(pools)).fewest_nodes(7) == {"V100": 3, "K80": 1}
    assert Cluster(tuple(pools)).fewest_nodes(11) == {"V100": 5, "K80": 2}, "more than there are"


def test_a_spread_job_is_as_slow_as_the_table_says(table: ProfileTable) -> None:
    alone = _simulated([traced("four", 0, 100, gpus=4, model="m")], server(2, nodes=2), table)
    assert metrics_of(alone).makespan_s == pytest.approx(100.0), "two nodes are the fewest that could hold it"
    long = [traced(f"long{index}", 0, 1000, gpus=3, model="three") for index in range(2)]
    known = {**table.spread, ("three", "v100", 3): 1.0}
    both = replace(table, models={"m", "three"}, find=lambda *_: flat_profile(1.0), spread=known)
    spread = _simulated([*long, traced("two", 1, 100, gpus=2, model="m")], server(4, nodes=2), both)
    assert spread.runs[-1].finish_s == pytest.approx(1.0 + 100.0 / 0.2), "one GPU on each node is left"


def test_a_policy_that_sees_it_keeps_jobs_together_and_ends_sooner(table: ProfileTable) -> None:
    """When jobs of four GPUs come each node has two of its four left over: those who hold the others move."""
    small = [traced(f"small{index:02}", 0, 3000 if index % 2 else 200, model="m") for index in range(16)]
    wide = [traced(f"wide{index}", 250, 1000, gpus=4, model="m") for index in range(2)]
    blind, seeing = (
        _simulated([*small, *wide], server(4, nodes=4), table, placement_sensitive=seen) for seen in (False, True)
    )
    spread_s = [sum(run.received_spread_s.values()) for run in seeing.runs if run.task.gpus > 1]
    assert spread_s == [50.0, 50.0], "until the first round"
    ends = [[run.finish_s for run in one.runs if run.task.gpus > 1] for one in (blind, seeing)]
    assert ends == [[4250.0, 4250.0], [pytest.approx(300.0 + 1000.0 - 50.0 * 0.25)] * 2]


def test_without_known_differences_it_changes_nothing(table: ProfileTable) -> None:
    jobs = [traced(f"j{index}", 70.0 * index, 900, gpus=(1, 2, 4)[index % 3], model="m") for index in range(9)]
    plain = build_workload(jobs, table, server(4, nodes=2))
    options = Options.of(policy="max-min-fairness", mechanism="proportional", round_s=100.0)
    seen = [
        [(run.start_s, run.finish_s, run.preemptions) for run in simulate(plain, one).runs]
        for one in (options, replace(options, plan=replace(options.plan, placement_sensitive=True)))
    ]
    assert seen[0] == seen[1]
