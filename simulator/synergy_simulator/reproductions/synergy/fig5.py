"""Figure 5: what optimistic profiling says of ResNet18, beside runs of a simulated job.

The runs are of a data loader with a MinIO cache, item by item over two epochs: items are read in random order, the
first ones fill the cache, nothing is evicted, and a step takes as long as the slower of fetching and computing.
"""

import math
import random

from synergy_core.profiling.adaptive_cpu_search import complete_curve, next_cpu_point
from synergy_core.profiling.memory_model import MemoryModel, steps_per_s
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import Findings, Inputs

ITEMS, BATCH = 60_000, 256
DATASET_GIB = 600.0
COMPUTE_STEPS_PER_S = 10.0
STORAGE_GIB_PER_S = 1.0
MEMORY_GIB = (62.5, 125.0, 250.0, 375.0, 500.0)
NOISE = 0.02
"""Standard deviation of a measured speed."""


def fig5(inputs: Inputs) -> Findings:
    """(a) speed over memory: the model beside the runs; (b) speed over CPUs: eight points beside all 24."""
    rng = random.Random(inputs.seed)  # noqa: S311
    scale = 4 if inputs.quick else 1
    memory = {gib: (_modelled(gib), _ran(gib, ITEMS // scale, rng)) for gib in MEMORY_GIB}
    rows = [
        (f"(a) {gib:g} GiB", f"{model:.3f}", f"{ran:.3f}", f"{abs(model / ran - 1):.1%}", "within 3 %")
        for gib, (model, ran) in memory.items()
    ]
    grid = tuple(1000 * cpus for cpus in range(1, 25))
    swept = {cpus: _cpu_speed(cpus / 1000) * rng.gauss(1.0, NOISE) for cpus in grid}
    measured: dict[int, float] = {}
    while (point := next_cpu_point(grid, measured)) is not None:
        measured[point] = _cpu_speed(point / 1000) * rng.gauss(1.0, NOISE)
    curve = complete_curve(grid, measured)
    errors = [abs(speed / _cpu_speed(cpus / 1000) - 1) for cpus, speed in zip(grid, curve, strict=True)]
    rows += [
        ("(b) points measured", f"{len(measured)}", "24", f"{24 / len(measured):.1f}x fewer", "8 instead of 24"),
        ("(b) mean error", f"{sum(errors) / len(errors):.1%}", "-", f"at most {max(errors):.1%}", "very closely"),
    ]
    charts = [
        Chart(
            [
                Line("model", [(gib, model) for gib, (model, _) in memory.items()]),
                Line("run", [(gib, ran) for gib, (_, ran) in memory.items()]),
            ],
            title="(a) speed over memory",
            x="GiB",
            y="steps/s",
        ),
        Chart(
            [
                Line("from 8 points", [(c / 1000, s) for c, s in zip(grid, curve, strict=True)]),
                Line("all 24 points", [(c / 1000, s) for c, s in swept.items()]),
            ],
            title="(b) speed over CPUs",
            x="CPUs",
            y="steps/s",
        ),
    ]
    differs = [
        (
            "The runs are of a simulated loader and GPU, not of ResNet18 on V100s; model and search are those that "
            "profile jobs on a cluster."
        ),
        f"Each measured speed has {NOISE:.0%} of noise.",
    ]
    worst = max(abs(model / ran - 1) for model, ran in memory.values())
    figures = {"memory_error": worst, "cpu_error": sum(errors) / len(errors), "points": float(len(measured))}
    header = ("", "profiled", "run", "difference", "the paper")
    return Findings("Figure 5: optimistic profiling", header, rows, differs, charts, figures)


def _model() -> MemoryModel:
    return MemoryModel(
        dataset_bytes=round(DATASET_GIB * 2**30),
        samples=ITEMS,
        batch_size=BATCH,
        storage_bytes_per_s=STORAGE_GIB_PER_S * 2**30,
        process_bytes=0,
    )


def _modelled(gib: float) -> float:
    return steps_per_s(COMPUTE_STEPS_PER_S, round(gib * 2**30), _model())


def _ran(gib: float, items: int, rng: random.Random) -> float:
    """Steps per second over two epochs after the one that fills the cache."""
    cached = set(rng.sample(range(items), round(items * min(1.0, gib / DATASET_GIB))))
    seconds, steps = 0.0, 0
    item_s = DATASET_GIB / ITEMS / STORAGE_GIB_PER_S
    for _ in range(2):
        order = rng.sample(range(items), items)
        for start in range(0, items - BATCH + 1, BATCH):
            missed = sum(item not in cached for item in order[start : start + BATCH])
            seconds += max(1.0 / COMPUTE_STEPS_PER_S, missed * item_s)
            steps += 1
    return steps / seconds


def _cpu_speed(cpus: float) -> float:
    """A smooth curve with a knee at 9 CPUs, as that of ResNet18 on one GPU in figure 2a."""
    return 1.0 / math.pow(math.pow(1.0 / cpus, 8) + math.pow(1.0 / 9.0, 8), 1 / 8)
