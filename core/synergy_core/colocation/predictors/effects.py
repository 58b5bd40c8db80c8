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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from synergy_core.colocation.predictors.of_pairs import ByNames, PairFractions
from synergy_core.model.arrays import Ints
from synergy_core.model.measurement import LEAST, Observation, SharedMeasurement
from synergy_core.model.usage import Usage

Floats = npt.NDArray[np.float64]
Feature = tuple[str, str]
"""A kind of weight, and the model or configuration whose weight it is (nothing for those of the load)."""

LOAD = ("partners", "compute", "product", "excess")
RANDOM = ("own", "own x compute", "own configuration", "partner", "partner x own", "partner configuration", "pair")
_BESIDE = " beside "
_LOAD_VARIANCE = 1.0
_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
        if len(usages) < 2:
            return (1.0,) * len(usages)
        weights = dict(zip(self.names, self.mean.tolist(), strict=True))
        seen = [usage.seen_by(counters=self.counters) for usage in usages]
        return tuple(max(LEAST, 1.0 + _dot(features, weights)) for features in _features_of_all(seen))

    def of_pairs(self, usages: Sequence[Usage]) -> PairFractions:
        """`fractions` of many pairs of jobs with these usages."""
        weights = dict(zip(self.names, self.mean.tolist(), strict=True))
        sums = _SumsOfPairs([usage.seen_by(counters=self.counters) for usage in usages], weights)
        return lambda two: np.maximum(LEAST, 1.0 + sums.of(two))

    def corrected(self, observations: Sequence[Observation]) -> "Effects":
        """The weights after these observations as well (Bayes' rule; the noise stays as it was estimated)."""
        if not observations:
            return self
        features = [
            _features(
                one.own.seen_by(counters=self.counters),
                [partner.seen_by(counters=self.counters) for partner in one.partners],
            )
            for one in observations
        ]
        wider = self._with(feature for one in features for feature in one)
        x = _matrix(features, wider.names)
        rest = np.array([one.fraction - 1.0 for one in observations]) - x @ wider.mean
        xs = x @ wider.covariance
        noise = self.variances["job"] + self.variances["together"]
        gain = np.linalg.solve(xs @ x.T + noise * np.eye(len(observations)), xs).T
        return replace(wider, mean=wider.mean + gain @ rest, covariance=wider.covariance - gain @ xs)

    def _with(self, features: Iterable[Feature]) -> "Effects":
        known = set(self.names)
        new = sorted({feature for feature in features if feature not in known})
        if not new:
            return self
        size = len(self.names)
        covariance = np.zeros((size + len(new),) * 2)
        covariance[:size, :size] = self.covariance
        for index, (kind, _) in enumerate(new, start=size):
            covariance[index, index] = self.variances[kind]
        mean = np.concatenate([self.mean, np.zeros(len(new))])
        return replace(self, names=(*self.names, *new), mean=mean, covariance=covariance)


def fit_effects(measurements: Sequence[SharedMeasurement], *, counters: bool = False) -> Effects:
    """The weights and variances fitted to the measurements, whose usages are counters' or utilisation.

    Raises ValueError where there are fewer than three of them.
    """
    if len(measurements) < 3:
        raise ValueError(f"{len(measurements)} measurements are too few; give at least three")
    features = [one for measurement in measurements for one in _features_of_all(measurement.usages)]
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


def _features_of_all(usages: Sequence[Usage]) -> list[dict[Feature, float]]:
    return [_features(own, (*usages[:index], *usages[index + 1 :])) for index, own in enumerate(usages)]


def _features(own: Usage, partners: Sequence[Usage]) -> dict[Feature, float]:
    load = sum(partner.compute for partner in partners)
    found: dict[Feature, float] = {
        ("partners", ""): float(len(partners)),
        ("compute", ""): load,
        ("product", ""): own.compute * load,
        ("excess", ""): max(0.0, own.compute + load - 1.0),
    }
    if own.model:
        found["own", own.model] = 1.0
        found["own x compute", own.model] = load
        found["own configuration", _configuration(own)] = 1.0
    for partner in partners:
        if partner.model:
            weights = (
                (("partner", partner.model), 1.0),
                (("partner x own", partner.model), own.compute),
                (("partner configuration", _configuration(partner)), 1.0),
            )
            for feature, value in weights:
                found[feature] = found.get(feature, 0.0) + value
        if own.model and partner.model:
            beside = ("pair", f"{own.model}{_BESIDE}{partner.model}")
            found[beside] = found.get(beside, 0.0) + 1.0
    return found


def _configuration(usage: Usage) -> str:
    return f"{usage.model} {usage.configuration}"


def _dot(features: Mapping[Feature, float], weights: Mapping[Feature, float]) -> float:
    total = 0.0
    for feature, value in features.items():  # in turn: from Python 3.12 on, `sum` rounds otherwise than arrays do
        total += value * weights.get(feature, 0.0)
    return total


class _SumsOfPairs:
    """`_dot` of the features of two jobs, for many pairs: the same products, added in the same order."""

    def __init__(self, usages: Sequence[Usage], weights: Mapping[Feature, float]) -> None:
        self._compute = np.array([usage.compute for usage in usages], dtype=float)
        self._load = [weights.get((kind, ""), 0.0) for kind in LOAD]
        models = [usage.model for usage in usages]
        configurations = [_configuration(usage) for usage in usages]
        self._of_job = [
            np.array(
                [weights.get((kind, name), 0.0) if model else 0.0 for name, model in zip(names, models, strict=True)]
            )
            for kind, names in zip(RANDOM, (models, models, configurations) * 2, strict=False)
        ]
        """By kind but for the last, which is of pairs."""
        self._of_pair = ByNames(models, _weights_of_pairs(weights))

    def of(self, two: Ints) -> Floats:
        """2 x P."""
        other = two[::-1]
        own, load = self._compute[two], self._compute[other]
        partners, compute, product, excess = self._load
        total = partners + load * compute
        total += own * load * product
        total += np.maximum(0.0, own + load - 1.0) * excess
        factors = ((two, 1.0), (two, load), (two, 1.0), (other, 1.0), (other, own), (other, 1.0))
        for weights, (whose, factor) in zip(self._of_job, factors, strict=True):
            if weights.any():
                total += factor * weights[whose]
        return total + self._of_pair.of(two) if self._of_pair else total


def _weights_of_pairs(weights: Mapping[Feature, float]) -> dict[tuple[str, str], float]:
    """By job and partner. A model's name may have the word between them in it, so each place of it is tried."""
    found = {}
    for (kind, name), weight in weights.items():
        place = name.find(_BESIDE) if kind == "pair" else -1
        while place >= 0:
            own, partner = name[:place], name[place + len(_BESIDE) :]
            if own and partner:
                found[own, partner] = weight
            place = name.find(_BESIDE, place + 1)
    return found


def _matrix(features: Sequence[Mapping[Feature, float]], names: Sequence[Feature]) -> Floats:
    place = {name: index for index, name in enumerate(names)}
    x = np.zeros((len(features), len(names)))
    for row, one in enumerate(features):
        for feature, value in one.items():
            x[row, place[feature]] = value
    return x
