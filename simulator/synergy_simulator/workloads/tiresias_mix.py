"""Traces like those of Tiresias' evaluation (section 5.1, tables 3 and 6, appendix A).

`scaled_down`: the 480 jobs that the paper scaled down from a production trace to 60 GPUs. What the paper states is
kept: how many jobs have how many GPUs, that each of the ten models has 48 jobs, the shares of the four bins, 2 minutes
to 2 hours, 30 s between arrivals in the mean. What it does not: within a bin the logarithm of the training time is
uniform.

`production_like`: any number of jobs with the same GPU counts and a heavy tail. Nine in ten are log-normal with a
median of 5 minutes (and a minute at least, as in appendix A); one in ten takes 4 to 8 hours, its logarithm uniform.
Three quarters of all jobs need less than a GPU-hour; the paper says "more than 60 %" (section 5.4.1).
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from synergy_simulator.inputs.errors import InputLocation
from synergy_simulator.inputs.traces import TraceJob

GPUS: Final[Mapping[int, int]] = {1: 240, 2: 40, 4: 80, 8: 90, 16: 25, 32: 5}
"""Jobs by GPUs (section 5.1)."""
SMALL_GPUS = 4
SHORT_S, LEAST_S, MOST_S = 800.0, 120.0, 7200.0
LONG_OF_SMALL, LONG_OF_LARGE = 12.5 / 76.0, 7.5 / 24.0
"""Parts of the small and of the large jobs that are long (table 3)."""
MEAN_GAP_S = 30.0
SKEW: Final[Mapping[str, float]] = {
    "VGG19": 0.715,
    "VGG16": 0.743,
    "VGG11": 0.773,
    "AlexNet": 0.610,
    "ResNet152": 0.039,
    "ResNet101": 0.053,
    "ResNet50": 0.092,
    "Inception4": 0.036,
    "Inception3": 0.086,
    "GoogleNet": 0.146,
}
"""Models with their skew, the largest tensor's part of the model (table 6)."""
MODEL_BYTES: Final[Mapping[str, int]] = {
    "VGG19": 548_100_000,
    "VGG16": 527_800_000,
    "VGG11": 506_800_000,
    "AlexNet": 235_900_000,
    "ResNet152": 230_200_000,
    "ResNet101": 170_400_000,
    "ResNet50": 97_700_000,
    "Inception4": 162_900_000,
    "Inception3": 91_000_000,
    "GoogleNet": 26_700_000,
}
"""Table 6."""
SENSITIVE: Final = ("VGG19", "VGG16", "VGG11", "AlexNet")
SPREAD_SPEED: Final = 0.6
"""Of these four, on more nodes than they must: 1 / 1.67, the most that placement gains in the paper (section 5.2.3)."""
LONG_JOBS, LONG_S = 0.1, (4 * 3600.0, 8 * 3600.0)
MEDIAN_S, SIGMA, SHORTEST_S = 300.0, 1.0, 60.0

_Drawn = tuple[int, str, float]
"""GPUs, model, training time in seconds."""


def scaled_down(*, seed: int, jobs: int = 480, jobs_per_hour: float = 3600.0 / MEAN_GAP_S) -> list[TraceJob]:
    """The 480 jobs in a random order, or the first so many of them; it costs to preempt them, and some to spread."""
    rng = random.Random(f"{seed}-testbed")  # noqa: S311 - a workload, not a secret
    sizes = [gpus for gpus, count in GPUS.items() for _ in range(count)]
    models = [model for model in SKEW for _ in range(len(sizes) // len(SKEW))]
    long = _long_ones(sizes, rng)
    rng.shuffle(models)
    drawn = []
    for index, gpus in enumerate(sizes):
        low, high = (SHORT_S, MOST_S) if index in long else (LEAST_S, SHORT_S)
        drawn.append((gpus, models[index], _log_uniform(low, high, rng)))
    rng.shuffle(drawn)
    return [
        replace(job, spread_speed=SPREAD_SPEED if job.model in SENSITIVE else 1.0)
        for job in _arriving(drawn[:jobs], jobs_per_hour, rng, seed)
    ]


def production_like(count: int, *, seed: int, jobs_per_hour: float) -> list[TraceJob]:
    """`count` jobs; `jobs_per_hour` arrive in the mean."""
    rng = random.Random(f"{seed}-production")  # noqa: S311 - a workload, not a secret
    drawn = [
        (rng.choices(list(GPUS), list(GPUS.values()))[0], rng.choice(list(SKEW)), _heavy_tailed(rng))
        for _ in range(count)
    ]
    return _arriving(drawn, jobs_per_hour, rng, seed)


def _heavy_tailed(rng: random.Random) -> float:
    if rng.random() < LONG_JOBS:
        return _log_uniform(*LONG_S, rng)
    return min(LONG_S[0], max(SHORTEST_S, rng.lognormvariate(math.log(MEDIAN_S), SIGMA)))


def _log_uniform(low: float, high: float, rng: random.Random) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _long_ones(sizes: Sequence[int], rng: random.Random) -> set[int]:
    small = [index for index, gpus in enumerate(sizes) if gpus <= SMALL_GPUS]
    large = [index for index, gpus in enumerate(sizes) if gpus > SMALL_GPUS]
    return {
        *rng.sample(small, round(LONG_OF_SMALL * len(small))),
        *rng.sample(large, round(LONG_OF_LARGE * len(large))),
    }


def _arriving(drawn: Sequence[_Drawn], jobs_per_hour: float, rng: random.Random, seed: int) -> list[TraceJob]:
    arrival, arrived = 0.0, []
    for index, (gpus, model, duration_s) in enumerate(drawn):
        arrival += rng.expovariate(jobs_per_hour / 3600.0)
        arrived.append(
            TraceJob(
                name=f"{index}",
                arrival_s=arrival,
                gpus=gpus,
                model=model,
                duration_s=duration_s,
                skew=SKEW[model],
                model_bytes=MODEL_BYTES[model],
                checkpoint_bytes=MODEL_BYTES[model],
                place=InputLocation(f"generated trace {seed}", index + 1),
            )
        )
    return arrived
