"""How well predictors do on families of models that they have not seen: leave-one-model-family-out cross-validation.

The family of a model is its name without digits and version at the end (`ResNet18` and `ResNet50` are ResNet). For each
family, a predictor is fitted to the measurements without any job of it, and judged by those with at least one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from synergy_core.colocation.predictors.effects import Effects
from synergy_core.model.measurement import Observation, Predictor, SharedMeasurement

KEPT = 0.85
"""Sharing is right where jobs keep this fraction of their speed."""

Fit = Callable[[Sequence[SharedMeasurement]], Predictor]


@dataclass(frozen=True, slots=True)
class Judged:
    """A measurement, and what was predicted for it without its families."""

    family: str
    predicted: tuple[float, ...]
    true: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Figures over judged measurements."""

    measurements: int
    mae: float
    """Mean absolute error of a job's fraction."""
    share_accuracy: float
    """Fraction of cases with a right answer to: does every job keep `KEPT`?"""
    mean_accuracy: float
    """Fraction of cases with a right answer to: do the jobs keep `KEPT` on average?"""
    commoner: float
    """What always giving the commoner answer would have as `share_accuracy`."""
    commoner_mean: float


def family(model: str) -> str:
    """`MobileNetV3` -> `MobileNet`."""
    return re.sub(r"[-_ ]?[Vv]?\d+$", "", model)


def judged(measurements: Sequence[SharedMeasurement], fit: Fit) -> list[Judged]:
    """Each measurement once for each of its families, with the prediction of a fit that saw none of that family.

    Raises ValueError where too few families are left to fit to.
    """
    found = []
    for name, inside, outside in _folds(measurements):
        predictor = fit(outside)
        found += [Judged(name, predictor.fractions(one.usages), one.fractions) for one in inside]
    return found


def judged_after(
    measurements: Sequence[SharedMeasurement], fit: Callable[[Sequence[SharedMeasurement]], Effects], seen: int
) -> list[Judged]:
    """The same for the job of the unseen family after `seen` of its other measurements, with whatever partners.

    Only that job's own fraction is judged. For each measurement the observations are drawn deterministically from the
    others of the same job: those that come next in the order given, round the end.
    """
    found = []
    for name, inside, outside in _folds(measurements):
        predictor = fit(outside)
        of_job: dict[tuple[str, str], list[tuple[SharedMeasurement, int]]] = {}
        for one in inside:
            for index, usage in enumerate(one.usages):
                if family(usage.model) == name:
                    of_job.setdefault((usage.model, usage.configuration), []).append((one, index))
        for mine in of_job.values():
            for place, (one, index) in enumerate(mine):
                others = [mine[(place + step) % len(mine)] for step in range(1, min(seen, len(mine) - 1) + 1)]
                corrected = predictor.corrected([_observation(other, at) for other, at in others])
                told = corrected.fractions(one.usages)[index]
                found.append(Judged(name, (told,), (one.fractions[index],)))
    return found


def threshold_accuracy(measurements: Sequence[SharedMeasurement]) -> float:
    """Fraction of cases with a right answer to "does every job keep `KEPT`?", by the thesis' criterion: a bound on the
    sum of compute.

    The bound (figure 4.12) is the one with the most right answers on the other families.
    """
    right = []
    for _, inside, outside in _folds(measurements):
        loads = sorted({_load(one) for one in outside})
        bound = max(loads, key=lambda load: sum((_load(one) <= load) == _all(one.fractions) for one in outside))
        right += [(_load(one) <= bound) == _all(one.fractions) for one in inside]
    return _part(right)


def _load(one: SharedMeasurement) -> float:
    return sum(usage.compute for usage in one.usages)


def _observation(one: SharedMeasurement, index: int) -> Observation:
    partners = (*one.usages[:index], *one.usages[index + 1 :])
    return Observation(one.usages[index], partners, one.fractions[index])


def score(of: Sequence[Judged]) -> Score:
    """Figures; raises ValueError where there is nothing to judge."""
    if not of:
        raise ValueError("there is no measurement to judge")
    errors = [abs(p - t) for one in of for p, t in zip(one.predicted, one.true, strict=True)]
    all_keep = [_all(one.true) for one in of]
    keep_mean = [_mean(one.true) for one in of]
    return Score(
        measurements=len(of),
        mae=sum(errors) / len(errors),
        share_accuracy=_part([_all(one.predicted) == truth for one, truth in zip(of, all_keep, strict=True)]),
        mean_accuracy=_part([_mean(one.predicted) == truth for one, truth in zip(of, keep_mean, strict=True)]),
        commoner=max(_part(all_keep), 1.0 - _part(all_keep)),
        commoner_mean=max(_part(keep_mean), 1.0 - _part(keep_mean)),
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Jobs whose predicted fraction lies in [low, high)."""

    low: float
    high: float
    jobs: int
    predicted: float
    """Mean of what was predicted."""
    true: float
    """Mean of what was measured."""
    deviation: float
    """Standard deviation of what was measured."""


def calibration(of: Sequence[Judged], width: float = 0.05) -> list[Bin]:
    """Predicted against measured fractions in steps of `width`; steps without a job are left out."""
    bins: dict[int, list[tuple[float, float]]] = {}
    for one in of:
        for predicted, true in zip(one.predicted, one.true, strict=True):
            bins.setdefault(int(predicted / width), []).append((predicted, true))
    found = []
    for index, pairs in sorted(bins.items()):
        truths = [true for _, true in pairs]
        mean = sum(truths) / len(truths)
        spread = (sum((true - mean) ** 2 for true in truths) / len(truths)) ** 0.5
        told = sum(predicted for predicted, _ in pairs) / len(pairs)
        found.append(Bin(index * width, (index + 1) * width, len(pairs), told, mean, spread))
    return found


def _folds(
    measurements: Sequence[SharedMeasurement],
) -> Iterator[tuple[str, list[SharedMeasurement], list[SharedMeasurement]]]:
    for name in sorted({family(usage.model) for one in measurements for usage in one.usages}):
        inside: list[SharedMeasurement] = []
        outside: list[SharedMeasurement] = []
        for one in measurements:
            has = any(family(usage.model) == name for usage in one.usages)
            (inside if has else outside).append(one)
        yield name, inside, outside


def _all(fractions: Sequence[float]) -> bool:
    return all(fraction >= KEPT for fraction in fractions)


def _mean(fractions: Sequence[float]) -> bool:
    return sum(fractions) >= KEPT * len(fractions)


def _part(answers: Sequence[bool]) -> float:
    return sum(answers) / len(answers)
