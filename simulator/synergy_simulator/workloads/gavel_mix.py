"""Jobs like those of Gavel's evaluation (section 7.1, table 2), and speeds of them for those without the authors'.

`drawn`: job types are uniform over the table of speeds. A job takes 10^x minutes on V100s, x uniform in [1.5, 3] for
80 % and in [3, 4] for 20 %; arrivals are a Poisson process.

`built_in_speeds`: speeds of our own making on V100, P100 and K80. They follow what the paper says in words: a V100 is
nearly ten times as fast as a K80 for ResNet-50 and twice for A3C (figure 1), jobs with small batches gain less, and
A3C, CycleGAN and recommendation run on one GPU only. What two of them keep on one GPU follows from how busy each keeps
it alone, by the law that was fitted to public pairs: small batches leave much of a GPU, a slower GPU leaves less.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from synergy_core.colocation.predictors.generic import EFFECTS
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.model.snapshot import Profile
from synergy_core.model.usage import Usage
from synergy_simulator.inputs.errors import InputLocation
from synergy_simulator.inputs.profiles import ProfileTable, flat_profile
from synergy_simulator.inputs.traces import TraceJob

REFERENCE: Final = "V100"
TYPES: Final = ("V100", "P100", "K80")
PRICES: Final[Mapping[str, float]] = {"V100": 2.48, "P100": 1.46, "K80": 0.45}
"""Dollars for an hour of a GPU, on demand, as figure 1b divides by them."""
SINGLE: Final[Mapping[int, float]] = {1: 1.0}
MULTIPLE: Final[Mapping[int, float]] = {1: 0.7, 2: 0.125, 4: 0.125, 8: 0.05}
"""Jobs by GPUs: 70 % one, 25 % two to four, 5 % eight."""
_SCALING = 0.85
"""Part of its speed per GPU that a job keeps each time its GPUs double."""


@dataclass(frozen=True, slots=True)
class _Family:
    """Jobs that differ in their batches: steps per second on a V100 with the smallest, and times as fast as the others'
    GPUs with the largest."""

    name: str
    batches: Sequence[int]
    fastest: float
    to_p100: float
    to_k80: float
    busy: tuple[float, float]
    """Part of a V100 that is in use with the smallest and with the largest batch."""
    one_gpu: bool = False


_FAMILIES: Final = (
    _Family("ResNet-50", (16, 32, 64, 128), 12.0, 1.7, 9.5, (0.6, 0.95)),
    _Family("ResNet-18", (16, 32, 64, 128, 256), 36.0, 1.5, 8.0, (0.3, 0.8)),
    _Family("A3C", (), 7.0, 1.3, 2.0, (0.25, 0.25), one_gpu=True),
    _Family("LM", (5, 10, 20, 40, 80), 110.0, 1.3, 4.6, (0.4, 0.85)),
    _Family("Transformer", (16, 32, 64, 128, 256), 11.0, 1.6, 4.2, (0.45, 0.9)),
    _Family("CycleGAN", (), 4.5, 1.9, 8.5, (0.95, 0.95), one_gpu=True),
    _Family("Recommendation", (512, 1024, 2048, 4096, 8192), 30.0, 1.1, 2.6, (0.15, 0.5), one_gpu=True),
)


def built_in_speeds() -> ProfileTable:
    """Steps per second, which CPU and memory do not change."""
    speeds = {name: value for family in _FAMILIES for name, value in _speeds(family).items()}
    one_gpu = {name for family in _FAMILIES if family.one_gpu for name in _speeds(family)}
    made: dict[tuple[str, str, int], Profile] = {}

    def find(model: str, gpu_type: str, gpus: int) -> Profile | None:
        known = speeds.get(model, {}).get(gpu_type.upper())
        if known is None or (gpus > 1 and model in one_gpu):
            return None
        key = model, gpu_type.upper(), gpus
        if key not in made:
            made[key] = flat_profile(known * gpus * _SCALING ** (gpus.bit_length() - 1))
        return made[key]

    return ProfileTable(speeds.keys(), find, {gpu_type.lower(): _pairs(slower) for gpu_type, slower in _BUSIER.items()})


_BUSIER: Final = {"V100": 1.0, "P100": 1.15, "K80": 1.3}
"""Times as much of a GPU of this type is in use."""


def _pairs(busier: float) -> PairTable:
    usages = {
        name: Usage(compute=min(1.0, compute * busier), bandwidth=0.0, model=name)
        for family in _FAMILIES
        for name, compute in _busy(family).items()
    }
    return PairTable(
        {
            (one, other): min(1.0, EFFECTS.fractions([usages[one], usages[other]])[0])
            for one, other in product(usages, repeat=2)
        }
    )


def _busy(family: _Family) -> dict[str, float]:
    if not family.batches:
        return {family.name: family.busy[0]}
    (least, most), last = family.busy, len(family.batches) - 1
    return {
        f"{family.name} (batch size {batch})": least + (most - least) * place / last
        for place, batch in enumerate(family.batches)
    }


def _speeds(family: _Family) -> dict[str, dict[str, float]]:
    """By job type, then by GPU type; with half of the largest batch a GPU has some 0.15 less of its lead."""
    if not family.batches:
        return {family.name: _on_types(family, family.fastest, 1.0)}
    least, most = family.batches[0], family.batches[-1]
    return {
        f"{family.name} (batch size {batch})": _on_types(
            family, family.fastest * (2 * least / (least + batch)), 0.4 + 0.6 * (batch / most) ** 0.35
        )
        for batch in family.batches
    }


def _on_types(family: _Family, fastest: float, lead: float) -> dict[str, float]:
    return {
        "V100": fastest,
        "P100": fastest / family.to_p100**lead,
        "K80": fastest / family.to_k80**lead,
    }


def drawn(
    count: int,
    profiles: ProfileTable,
    *,
    seed: int,
    jobs_per_hour: float | None = None,
    gpu_mix: Mapping[int, float] = SINGLE,
    models: Sequence[str] = (),
    important: float = 0.0,
) -> list[TraceJob]:
    """`count` jobs whose steps follow from their durations on V100s. Without a load all arrive at 0.

    `models`: of these job types only. `important`: part of the jobs that have a weight of 5. Each draw comes from a
    stream of its own: traces of one seed differ only in what the caller varies.
    """
    lengths, sizes, kinds, gaps, weights = (
        random.Random(f"gavel-{seed}-{what}")  # noqa: S311 - a workload, not a secret
        for what in ("lengths", "sizes", "kinds", "gaps", "weights")
    )
    names = sorted(models or profiles.models)
    by_gpus = {gpus: [name for name in names if _runs(profiles, name, gpus)] for gpus in gpu_mix}
    arrival = 0.0
    jobs = []
    for index in range(count):
        if jobs_per_hour is not None:
            arrival += gaps.expovariate(jobs_per_hour / 3600.0)
        exponent = lengths.uniform(1.5, 3.0) if lengths.random() < 0.8 else lengths.uniform(3.0, 4.0)
        gpus = sizes.choices(list(gpu_mix), list(gpu_mix.values()))[0]
        model = kinds.choice(by_gpus[gpus])
        jobs.append(
            TraceJob(
                name=f"{index}",
                arrival_s=arrival,
                gpus=gpus,
                model=model,
                steps=steps_in(profiles, model, gpus, 60.0 * 10.0**exponent),
                weight=5.0 if weights.random() < important else 1.0,
                place=InputLocation(f"generated trace {seed}", index + 1),
            )
        )
    return jobs


def steps_in(profiles: ProfileTable, model: str, gpus: int, seconds: float) -> int:
    """Steps that a job makes in so many seconds on V100s."""
    profile = profiles.find(model, REFERENCE, gpus)
    return 1 if profile is None else max(1, round(seconds * profile.steps_per_s[-1][-1]))


def _runs(profiles: ProfileTable, model: str, gpus: int) -> bool:
    return profiles.find(model, REFERENCE, gpus) is not None
