"""Partial profiling in the simulation: estimators that know some models wholly and of the others a few pairs."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synergy_core.colocation.grouping import WORTH
from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.colocation.predictors.references import References
from synergy_core.model.measurement import Observation
from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Error:
    """Of the pairs that were not measured."""

    pairs: int
    mean: float
    """Mean absolute error of what a model keeps of its speed."""
    of_the_mean: float
    """The same if each prediction were the mean of all reference pairs."""
    right: float
    """Fraction of the pairs for which the prediction says rightly whether sharing gains."""


def profiled(table: PairTable, *, references: int, beside: int, seed: int) -> Estimator:
    """An estimator that knows so many of the table's models, and each other one `beside` so many of these."""
    models = sorted({model for model, _ in table.kept})
    chance = random.Random(f"profiling {seed}")  # noqa: S311 - a choice, not a secret
    known = sorted(chance.sample(models, min(references, len(models))))
    observations = []
    for model in (one for one in models if one not in known):
        for other in chance.sample(known, min(beside, len(known))):
            observations += [_seen(table, model, other), _seen(table, other, model)]
    return Estimator(References.of(table, known)).corrected(observations)


def _seen(table: PairTable, model: str, other: str) -> Observation:
    own, partner = (Usage(compute=0.0, bandwidth=0.0, model=name) for name in (model, other))
    return Observation(own, (partner,), table.fractions([own, partner])[0])


def error_of(estimators: Mapping[str, Estimator], tables: Mapping[str, PairTable]) -> Error:
    """How far the estimates of all types' pairs of which a model is new are from the tables."""
    errors: list[float] = []
    usual: list[float] = []
    right: list[bool] = []
    for gpu_type, estimator in estimators.items():
        table, mean = tables[gpu_type], _mean(estimator.references, tables[gpu_type])
        for (one, other), true in table.kept.items():
            if (one, other) in estimator.measured or {one, other} <= set(estimator.references.models):
                continue
            told = estimator.kept(one, other)
            errors.append(abs(told - true))
            usual.append(abs(mean - true))
            both = told + estimator.kept(other, one), true + table.kept.get((other, one), 0.0)
            right.append((both[0] > 1.0 + WORTH) == (both[1] > 1.0 + WORTH))
    count = max(1, len(errors))
    return Error(len(errors), sum(errors) / count, sum(usual) / count, sum(right) / count)


def _mean(references: References, table: PairTable) -> float:
    known: Sequence[float] = [
        table.kept[one, other] for one in references.models for other in references.models if (one, other) in table.kept
    ]
    return sum(known) / len(known)
