"""Do 80 % intervals hold 80 % of what then happens? On drawn traces, and on those of the papers where they are."""

import random
from functools import cache

import pytest

from support import papers
from synergy_core.model.config import PlanConfig
from synergy_simulator.engine.options import Options
from synergy_simulator.forecast.calibration import Calibration, calibrate
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.study.load import load
from synergy_simulator.workloads.workload import Workload

SRTF = Options(plan=PlanConfig(policy="srtf", explain=False))


def drawn(seed: int) -> Workload:
    """A trace of 60 jobs for 4 GPUs that are nearly all in use."""
    chance = random.Random(seed)
    rows, now = [], 0.0
    for index in range(60):
        now += chance.expovariate(1 / 900)
        rows.append(
            {
                "job_id": f"j{index}",
                "arrival_s": now,
                "gpus": chance.choice([1, 1, 2]),
                "model": "any",
                "duration_s": chance.lognormvariate(7.3, 1.0),
            }
        )
    pool = SimulatedPool(
        name="v100", gpu_type="V100", nodes=1, gpus_per_node=4, cpus_per_node=12, memory_gib_per_node=250
    )
    return load(rows, None, Cluster((pool,)))


@cache
def on_drawn_traces() -> tuple[Calibration, ...]:
    """One trace has one future, in which all jobs of its moments are late or early together: hence several traces."""
    return tuple(calibrate(drawn(seed), SRTF, moments=3, draws=10) for seed in range(12))


def test_intervals_hold_80_percent_on_drawn_traces() -> None:
    ends = [found.finish for found in on_drawn_traces()]
    intervals, inside = sum(one.intervals for one in ends), sum(one.inside for one in ends)
    assert intervals > 40, "too few jobs whose end depends on arrivals"
    assert 0.7 < inside / intervals < 0.9


def test_a_point_is_right_where_no_draw_makes_a_difference() -> None:
    ends = [found.finish for found in on_drawn_traces()]
    assert sum(one.points_right for one in ends) / sum(one.points for one in ends) > 0.9


@pytest.mark.papers
def test_where_nobody_comes_each_time_is_known_to_the_second() -> None:
    """Gavel's static trace: all jobs come at once, to three GPU types."""
    folder = papers.found("gavel")
    if folder is None:
        pytest.skip("the papers' data tables are not beside the project (PAPERS_DATA names their folder)")
    pools = tuple(
        SimulatedPool(name=kind, gpu_type=kind, nodes=3, gpus_per_node=4, cpus_per_node=32, memory_gib_per_node=256)
        for kind in ("v100", "p100", "k80")
    )
    workload = load(folder / "static_multi_120_s0.csv", folder / "simulation_throughputs.json", Cluster(pools))
    found = calibrate(workload, SRTF, moments=1, draws=1)
    assert (found.start.points_right, found.finish.points_right) == (len(workload.tasks), len(workload.tasks))
