"""What a forecast of a large cluster holds in memory: its draws are bounded, and each is gone after it."""

import gc
from dataclasses import replace
from typing import Any

import pytest

from synergy_core.collector import collector_paused
from synergy_core.model.snapshot import Job, Node, PastJob, Profile, Snapshot
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.forecast import forecast
from synergy_simulator.forecast.forecast import Forecaster
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.workloads.workload import Workload

GIB = 1 << 30
NOW = 1000.0
NODE = Node(name="n0", gpu_type="V100", gpus=4, cpu_millis=16_000, memory_bytes=64 * GIB)
PROFILE = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))
SNAPSHOT = Snapshot(
    nodes=(NODE, replace(NODE, name="n1")),
    jobs=tuple(
        Job(
            name=f"job-{index}", gpus=1 + index % 3, steps_total=5000, profiles={"V100": PROFILE}, arrival_s=NOW - index
        )
        for index in range(6)
    ),
    now=NOW,
    config={"policy": "las"},
)


def forecaster(past: list[PastJob]) -> Forecaster:
    return Forecaster(SNAPSHOT, options_of_snapshot(SNAPSHOT), past)


def test_after_a_burst_a_draw_has_a_bounded_number_of_arrivals(monkeypatch: pytest.MonkeyPatch) -> None:
    come: list[int] = []
    horizons: list[float] = []

    def counted(workload: Workload, *args: Any, **more: Any) -> Any:
        come.append(len(workload.tasks))
        if come[-1] == 60:
            horizons.append(more["until_s"])
        return simulate(workload, *args, **more)

    monkeypatch.setattr(forecast, "_MOST_ARRIVALS", 60)
    monkeypatch.setattr(forecast, "simulate", counted)
    one = forecaster([PastJob(arrival_s=NOW - index / 100, gpus=1, finish_s=NOW + index) for index in range(1, 51)])
    for seed in range(30):
        one.draw(str(seed))
    assert max(come) == 60
    assert min(horizons) < NOW + 1.0, "it ends when the next one would come, not after a day"


def test_a_draw_leaves_nothing_that_only_the_collector_would_find() -> None:
    one = forecaster([PastJob(arrival_s=NOW - 20.0 * index, gpus=1, finish_s=NOW) for index in range(1, 30)])
    one.draw("first")
    gc.collect()
    with collector_paused():
        one.draw("second")
        assert gc.collect() == 0
