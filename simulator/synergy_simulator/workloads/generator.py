"""Traces derived from production as in Synergy's evaluation (section 5.1)."""

import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from synergy_simulator.inputs.errors import InputError, InputLocation
from synergy_simulator.inputs.traces import TraceJob

TASKS: Mapping[str, tuple[str, ...]] = {
    "image": ("alexnet", "mobilenet", "res18", "res50", "shufflenet"),
    "language": ("gnmt", "lstm", "transformer"),
    "speech": ("deepspeech", "m5"),
}
"""Models by task (table 4)."""

SINGLE: Mapping[int, float] = {1: 1.0}
"""All jobs ask for one GPU."""

PHILLY: Mapping[int, float] = {1: 76627, 2: 1818, 4: 1870, 8: 1643, 12: 7, 16: 199}
"""How many jobs of Microsoft's Philly cluster in autumn 2017 asked for so many GPUs, up to the 16 of section 5.1."""


@dataclass(frozen=True, slots=True)
class Split:
    """Parts of image, language and speech models in a workload."""

    image: float
    language: float
    speech: float

    def __str__(self) -> str:
        return f"({self.image:g},{self.language:g},{self.speech:g})"


def parse_split(text: str) -> Split:
    """`20,70,10` -> Split; raises ValueError that says what is wrong."""
    try:
        parts = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"must be three numbers like 20,70,10, is {text!r}") from None
    if len(parts) != 3 or any(part < 0 or not math.isfinite(part) for part in parts) or sum(parts) <= 0:
        raise ValueError(f"must be three numbers of at least 0, not all 0, like 20,70,10, is {text!r}")
    return Split(*parts)


def generate(
    count: int,
    *,
    seed: int,
    split: Split,
    models: Collection[str],
    jobs_per_hour: float | None = None,
    gpu_mix: Mapping[int, float] = SINGLE,
) -> list[TraceJob]:
    """`count` jobs whose models are drawn from `models` by the split. Without a load all arrive at 0 (a static trace).

    Durations at the proportional share are 10^x minutes, x uniform in [1.5, 3] for 80 % and in [3, 4] for 20 %;
    arrivals are a Poisson process. Jobs, models, sizes and arrivals come from one stream each: traces of one seed
    differ only in what the caller varies.
    """
    lengths, sizes, gaps = (random.Random(f"{seed}-{what}") for what in ("lengths", "sizes", "gaps"))  # noqa: S311
    arrival = 0.0
    jobs = []
    for index in range(count):
        if jobs_per_hour is not None:
            arrival += gaps.expovariate(jobs_per_hour / 3600.0)
        exponent = lengths.uniform(1.5, 3.0) if lengths.random() < 0.8 else lengths.uniform(3.0, 4.0)
        jobs.append(
            TraceJob(
                name=f"{index}",
                arrival_s=arrival,
                gpus=sizes.choices(list(gpu_mix), list(gpu_mix.values()))[0],
                model=None,
                duration_s=60.0 * 10.0**exponent,
                place=InputLocation(f"generated trace {seed}", index + 1),
            )
        )
    return with_models(jobs, split, models, seed=seed)


def with_models(jobs: Iterable[TraceJob], split: Split, models: Collection[str], *, seed: int) -> list[TraceJob]:
    """Give a model to each job that has none. Raises InputError where a task of the split has no model."""
    jobs = list(jobs)
    if all(job.model is not None for job in jobs):
        return jobs
    rng = random.Random(f"{seed}-models")  # noqa: S311 - a workload, not a secret
    weights = {"image": split.image, "language": split.language, "speech": split.speech}
    pools = {task: [name for name in TASKS[task] if name in models] for task, weight in weights.items() if weight > 0}
    for task, names in pools.items():
        if not names:
            problem = f"asks for {task} models, and the profiles have none of {', '.join(TASKS[task])}"
            raise InputError(InputLocation("workload split"), problem)
    tasks, parts = list(pools), [weights[task] for task in pools]
    return [job if job.model is not None else _with_model(job, rng, pools, tasks, parts) for job in jobs]


def _with_model(
    job: TraceJob, rng: random.Random, pools: Mapping[str, Sequence[str]], tasks: Sequence[str], parts: Sequence[float]
) -> TraceJob:
    return replace(job, model=rng.choice(pools[rng.choices(tasks, parts)[0]]))
