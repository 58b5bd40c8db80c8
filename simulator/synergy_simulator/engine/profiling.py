"""Partial profiling in the simulation: estimators that know some models wholly and of the others a few pairs."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synergy_core.colocation.grouping import WORTH
from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.fingerprint import Kept, next_reference
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


@dataclass(frozen=True, slots=True)
class Profiled:
    """An estimator, and what it took."""

    estimator: Estimator
    pairs: int
    """Runs of new models beside references."""
    full: int
    """Runs that measuring each new model beside all references would take."""

    @property
    def saved(self) -> float:
        """Fraction of the GPU time of full profiling: every run takes as long."""
        return 1.0 - self.pairs / self.full if self.full else 0.0


def profiled(table: PairTable, *, references: int, beside: int, seed: int, choose: bool = True) -> Profiled:
    """An estimator that knows so many of the table's models, and each other one `beside` so many of these at the most.

    The references beside which a model runs are chosen as profile runs of a cluster choose them, which stop when little
    more is to be learnt. Without `choose` they are drawn at random, `beside` of them.
    """
    models = sorted({model for model, _ in table.kept})
    chance = random.Random(f"profiling {seed}")  # noqa: S311 - a choice, not a secret
    known = sorted(chance.sample(models, min(references, len(models))))
    base = References.of(table, known)
    observations: list[Observation] = []
    pairs, new = 0, [one for one in models if one not in known]
    for model in new:
        possible = [other for other in known if (model, other) in table.kept and (other, model) in table.kept]
        drawn = chance.sample(known, min(beside, len(known)))
        others = _chosen(table, base, model, possible, beside) if choose else drawn
        pairs += len(others)
        for other in others:
            observations += [_seen(table, model, other), _seen(table, other, model)]
    return Profiled(Estimator(base).corrected(observations), pairs, len(new) * len(known))


def _chosen(table: PairTable, base: References, model: str, possible: Sequence[str], most: int) -> list[str]:
    """The references beside which the model runs, one after the other."""
    measured: dict[str, Kept] = {}
    while (other := next_reference(base, measured, possible, most=most)) is not None:
        measured[other] = (table.kept[model, other], table.kept[other, model])
    return list(measured)


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
