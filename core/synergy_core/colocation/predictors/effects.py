"""Our predictor: what the load explains, and beside it what is peculiar to a model and to a configuration of it.

A job's fraction is 1 + x w, where x has

* of the load: the number of partners, their compute, its product with the job's own compute, and by how much the
  compute of all together exceeds the GPU;
* of the job's model: a sensitivity, and one that grows with the partners' compute; of its configuration: another;
* of each partner's model: a pressure, and one that grows with the job's own compute; of its configuration: another;
* of the job's model and each partner's together: what they do to each other beyond that.

Weights of models and configurations are random effects: normal, around 0, with a variance for each of the seven kinds
that is estimated from the measurements (expectation maximisation), as are the noise of a job's figure and the noise
that the jobs of one measurement have in common. So a model that was measured is predicted as it was measured, one that
was not by its load alone, and everything between follows from Bayes' rule: `corrected` takes what was seen since into
account, also of a model or configuration that was never measured. Sensitivity and pressure as latent traits of jobs
are Paragon's and Quasar's idea; here they are what the load does not explain.

The weights are some hundred numbers; a prediction is a dozen products.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from synergy_core.colocation.predictors.bayes import Private, learnt
from synergy_core.colocation.predictors.by_weights import ByWeights
from synergy_core.colocation.predictors.features import RANDOM, Feature, features_of, features_of_all
from synergy_core.colocation.predictors.of_pairs import PairFractions
from synergy_core.model.arrays import Floats
from synergy_core.model.measurement import Observation, SharedMeasurement
from synergy_core.model.usage import Usage

_LOAD_VARIANCE = 1.0
_STEPS = 60
_FEW = 16
"""Observations: a weight that was not fitted and that more of them have is a common one (`bayes`). So the models of
references are, beside which all jobs are measured."""
_CORRECTED = 16
"""As many corrected predictors are kept: one for each GPU type of a plan, and those of a plan or two before. Each has
some megabytes where thousands of observations correct it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Effects:
    """The weights after some measurements: their mean and covariance."""

    names: tuple[Feature, ...]
    mean: Floats
    covariance: Floats
    variances: Mapping[str, float]
    """Of the random effects, by kind; `job` is the noise of a figure, `together` that of the jobs of a measurement."""
    counters: bool = False
    """Fitted to GPU counters, not to utilisation."""

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        """The fraction of each job if all of them share one GPU."""
        return self._by_weights.fractions(usages)

    def of_pairs(self, usages: Sequence[Usage]) -> PairFractions:
        """`fractions` of many pairs of jobs with these usages."""
        return self._by_weights.of_pairs(usages)

    def corrected(self, observations: Sequence[Observation]) -> "Effects | Corrected":
        """What it predicts after these observations as well (Bayes' rule; the noise stays as it was estimated)."""
        return _corrected(self, tuple(observations)) if observations else self

    @cached_property
    def _by_weights(self) -> ByWeights:
        return ByWeights(dict(zip(self.names, self.mean.tolist(), strict=True)), self.counters)


@dataclass(frozen=True, slots=True, eq=False)
class Corrected(ByWeights):
    """Predicts by the weights after observations."""

    fitted: Effects
    observations: tuple[Observation, ...]

    def corrected(self, observations: Sequence[Observation]) -> "Effects | Corrected":
        """What is predicted after further observations."""
        return self.fitted.corrected((*self.observations, *observations)) if observations else self


@lru_cache(maxsize=_CORRECTED)
def _corrected(fitted: Effects, observations: tuple[Observation, ...]) -> Corrected:
    """`Effects.corrected`: kept, as most plans have the observations of the last one."""
    features = [
        features_of(
            one.own.seen_by(counters=fitted.counters),
            [partner.seen_by(counters=fitted.counters) for partner in one.partners],
        )
        for one in observations
    ]
    uses = Counter(feature for one in features for feature in one)
    new = sorted(uses.keys() - set(fitted.names))
    often = [feature for feature in new if uses[feature] > _FEW]
    seldom = [feature for feature in new if uses[feature] <= _FEW]
    common = (*fitted.names, *often)
    mean = np.concatenate([fitted.mean, np.zeros(len(often))])
    covariance = np.diag(np.concatenate([np.zeros(len(fitted.mean)), _variances(fitted, often)]))
    covariance[: len(fitted.mean), : len(fitted.mean)] = fitted.covariance

    x = _matrix(features, common)
    rest = np.array([one.fraction - 1.0 for one in observations]) - x @ mean
    noise = fitted.variances["job"] + fitted.variances["together"]
    of_common, of_seldom = learnt(x, covariance, _private(features, seldom, _variances(fitted, seldom)), noise, rest)
    weights = zip((*common, *seldom), (*(mean + of_common).tolist(), *of_seldom.tolist()), strict=True)
    return Corrected(dict(weights), fitted.counters, fitted, observations)


def _variances(fitted: Effects, features: Sequence[Feature]) -> Floats:
    return np.array([fitted.variances[kind] for kind, _ in features], dtype=np.float64)


def _private(features: Sequence[Mapping[Feature, float]], names: Sequence[Feature], variances: Floats) -> Private:
    """Which of the weights with these names each observation has."""
    number = {name: index for index, name in enumerate(names)}
    entries = sorted(
        (number[feature], row, value)
        for row, one in enumerate(features)
        for feature, value in one.items()
        if feature in number
    )
    weights, rows, factors = zip(*entries, strict=True) if entries else ((), (), ())
    return Private(
        np.array(rows, dtype=np.int64), np.array(weights, dtype=np.int64), np.array(factors, dtype=float), variances
    )


def fit_effects(measurements: Sequence[SharedMeasurement], *, counters: bool = False) -> Effects:
    """The weights and variances fitted to the measurements, whose usages are counters' or utilisation.

    Raises ValueError where there are fewer than three of them.
    """
    if len(measurements) < 3:
        raise ValueError(f"{len(measurements)} measurements are too few; give at least three")
    features = [one for measurement in measurements for one in features_of_all(measurement.usages)]
    names = tuple(sorted({feature for one in features for feature in one}))
    kinds = [kind for kind, _ in names]
    statistics = _Statistics(_matrix(features, names), measurements)
    variances = dict.fromkeys(RANDOM, 0.05**2) | {"job": 0.06**2, "together": 0.02**2}
    for _ in range(_STEPS):
        mean, covariance = statistics.posterior(kinds, variances)
        variances = _maximised(kinds, mean, covariance, variances) | statistics.noise(mean, covariance)
    mean, covariance = statistics.posterior(kinds, variances)
    return Effects(names=names, mean=mean, covariance=covariance, variances=variances, counters=counters)


class _Statistics:
    """Sums over the measurements that estimating needs; jobs of a measurement have noise in common."""

    def __init__(self, x: Floats, measurements: Sequence[SharedMeasurement]) -> None:
        sizes = [len(one.fractions) for one in measurements]
        self._y = np.array([fraction - 1.0 for one in measurements for fraction in one.fractions])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._sizes = np.array(sizes, dtype=float)
        self._x = x
        # each measurement's sum over its jobs, over the square root of their number
        self._sx = np.add.reduceat(x, starts) / np.sqrt(self._sizes)[:, None]
        self._sy = np.add.reduceat(self._y, starts) / np.sqrt(self._sizes)
        self._xx, self._xy = x.T @ x, x.T @ self._y

    def posterior(self, kinds: Sequence[str], variances: Mapping[str, float]) -> tuple[Floats, Floats]:
        """Mean and covariance of the weights."""
        job, common = variances["job"], variances["together"]
        part = self._sizes * common / (job + self._sizes * common)
        precision = np.array([1.0 / variances.get(kind, _LOAD_VARIANCE) for kind in kinds])
        a = (self._xx - (self._sx * part[:, None]).T @ self._sx) / job + np.diag(precision)
        covariance = np.linalg.inv(a)
        mean = covariance @ (self._xy - (self._sx * part[:, None]).T @ self._sy) / job
        return mean, covariance

    def noise(self, mean: Floats, covariance: Floats) -> dict[str, float]:
        """The noise of a job's figure, and that of a measurement, from what the weights leave."""
        rest = self._y - self._x @ mean
        whole = float(rest @ rest + np.sum(self._xx * covariance))
        of_measurements = self._sy - self._sx @ mean
        between = float(of_measurements @ of_measurements + np.sum((self._sx @ covariance) * self._sx))
        count, jobs = len(self._sizes), float(self._sizes.sum())
        job = max(1e-6, (whole - between) / max(1.0, jobs - count))
        return {"job": job, "together": max(1e-8, (between - count * job) / jobs)}


def _maximised(kinds: Sequence[str], mean: Floats, covariance: Floats, before: Mapping[str, float]) -> dict[str, float]:
    squares = mean**2 + np.diag(covariance)
    found = dict(before)
    for kind in RANDOM:
        mine = [square for name, square in zip(kinds, squares.tolist(), strict=True) if name == kind]
        if mine:
            found[kind] = max(1e-8, sum(mine) / len(mine))
    return found


def _matrix(features: Sequence[Mapping[Feature, float]], names: Sequence[Feature]) -> Floats:
    """The factors of the weights with these names; a row has those of one job."""
    place = {name: index for index, name in enumerate(names)}
    x = np.zeros((len(features), len(names)))
    for row, one in enumerate(features):
        for feature, value in one.items():
            if feature in place:
                x[row, place[feature]] = value
    return x
