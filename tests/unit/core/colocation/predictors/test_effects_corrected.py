"""Effects after observations: Bayes' rule without the covariance of all weights, and kept from plan to plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synergy_core.colocation.predictors import effects
from synergy_core.colocation.predictors.bayes import Private, learnt
from synergy_core.colocation.predictors.by_weights import ByWeights
from synergy_core.colocation.predictors.effects import Corrected, Effects, fit_effects
from synergy_core.colocation.predictors.features import Feature, features_of
from synergy_core.colocation.predictors.generic import EFFECTS
from synergy_core.colocation.predictors.of_pairs import of_pairs
from synergy_core.colocation.rules import Rules
from synergy_core.model.arrays import Floats
from synergy_core.model.config import PlanConfig
from synergy_core.model.measurement import Observation, SharedMeasurement
from synergy_core.model.snapshot import Job, Node, Shared
from synergy_core.model.usage import Usage

MODELS = ("", "a", "b", "c", "d", "e", "f beside g")


@dataclass(frozen=True)
class _Plain:
    """Weights with the covariance of all of them, as Bayes' rule is written down."""

    fitted: Effects
    names: tuple[Feature, ...]
    mean: Floats
    covariance: Floats

    def after(self, observations: Sequence[Observation]) -> "_Plain":
        rows = [features_of(one.own, one.partners) for one in observations]
        new = sorted({feature for one in rows for feature in one} - set(self.names))
        names = (*self.names, *new)
        covariance = np.diag([0.0] * len(self.names) + [self.fitted.variances[kind] for kind, _ in new])
        covariance[: len(self.names), : len(self.names)] = self.covariance
        mean = np.concatenate([self.mean, np.zeros(len(new))])
        x = np.array([[one.get(name, 0.0) for name in names] for one in rows])
        noise = self.fitted.variances["job"] + self.fitted.variances["together"]
        gain = covariance @ x.T @ np.linalg.inv(x @ covariance @ x.T + noise * np.eye(len(rows)))
        rest = np.array([one.fraction - 1.0 for one in observations]) - x @ mean
        return _Plain(self.fitted, names, mean + gain @ rest, covariance - gain @ x @ covariance)

    def predictor(self) -> ByWeights:
        return ByWeights(dict(zip(self.names, self.mean.tolist(), strict=True)), counters=False)


def _plain(fitted: Effects) -> _Plain:
    return _Plain(fitted, fitted.names, fitted.mean, fitted.covariance)


def _usage(rng: Random, models: Sequence[str] = MODELS) -> Usage:
    return Usage(compute=rng.random(), bandwidth=0.1, model=rng.choice(models), configuration=rng.choice("xyz"))


def _observation(rng: Random) -> Observation:
    partners = tuple(_usage(rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))
    return Observation(_usage(rng), partners, rng.uniform(0.3, 1.1))


def _fitted(rng: Random) -> Effects:
    """The generic one, or one that some of the models were fitted to."""
    if rng.random() < 0.5:
        return replace(EFFECTS)
    pairs = [(_usage(rng, MODELS[:4]), _usage(rng, MODELS[:4])) for _ in range(10)]
    return fit_effects([SharedMeasurement(two, (rng.uniform(0.4, 1.0), rng.uniform(0.4, 1.0))) for two in pairs])


@settings(max_examples=150)
@given(st.randoms(use_true_random=False), st.sampled_from((0, 1, 3, 16)))
def test_it_predicts_each_pair_as_bayes_rule_does_with_the_covariance_of_all_weights(rng: Random, few: int) -> None:
    fitted = _fitted(rng)
    observations = [_observation(rng) for _ in range(rng.randint(1, 30))]
    some = rng.randint(0, len(observations))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effects, "_FEW", few)
        found = fitted.corrected(observations)
        in_two_steps = fitted.corrected(observations[:some]).corrected(observations[some:])
    plain = _plain(fitted).after(observations)
    if 0 < some < len(observations):
        plain = _plain(fitted).after(observations[:some]).after(observations[some:])
    usages = [_usage(rng) for _ in range(8)]
    two = np.array(list(combinations_with_replacement(range(8), 2))).T
    expected = plain.predictor().of_pairs(usages)(two)
    for predictor in (found, in_two_steps):
        assert isinstance(predictor, Corrected)
        assert predictor.weights.keys() == set(plain.names)
        assert of_pairs(predictor, usages)(two) == pytest.approx(expected, rel=1e-9)
    three = usages[:3]
    assert found.fractions(three) == pytest.approx(plain.predictor().fractions(three), rel=1e-9)


@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_common_and_private_weights_are_learnt_as_from_one_covariance(rng: Random) -> None:
    count, commons, privates = rng.randint(1, 12), rng.randint(1, 3), rng.randint(0, 8)
    draw = np.random.default_rng(rng.randrange(1 << 32))
    common, root = draw.normal(size=(count, commons)), draw.normal(size=(commons, commons))
    used = sorted({(weight, rng.randrange(count)) for weight in range(privates) for _ in range(rng.randint(1, 3))})
    private = Private(
        np.array([row for _, row in used], dtype=np.int64),
        np.array([weight for weight, _ in used], dtype=np.int64),
        draw.normal(size=len(used)),
        draw.uniform(0.1, 2.0, privates),
    )
    rest, noise = draw.normal(size=count), rng.uniform(0.1, 1.0)
    x = np.hstack([common, np.zeros((count, privates))])
    for (weight, row), factor in zip(used, private.factors.tolist(), strict=True):
        x[row, commons + weight] = factor
    prior = np.diag(np.concatenate([np.zeros(commons), private.variances]))
    prior[:commons, :commons] = root @ root.T
    expected = prior @ x.T @ np.linalg.inv(x @ prior @ x.T + noise * np.eye(count)) @ rest
    found = np.concatenate(learnt(common, root @ root.T, private, noise, rest))
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("jobs", [100, 200])
def test_beside_references_no_system_grows_with_the_number_of_jobs(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(3)
    references = [Usage(compute=0.2 * number, bandwidth=0.1, model=f"reference {number}") for number in range(4)]
    seen: list[Observation] = []
    for number in range(jobs):
        own = replace(_usage(rng), model=f"job {number}")
        for other in rng.sample(references, 2):
            seen += [Observation(own, (other,), rng.random()), Observation(other, (own,), rng.random())]
    sizes: list[int] = []
    solve = np.linalg.solve

    def counted(a: Floats, b: Floats) -> Floats:
        sizes.append(a.shape[-1])
        return np.asarray(solve(a, b))

    monkeypatch.setattr(np.linalg, "solve", counted)
    replace(EFFECTS).corrected(seen)
    # what a job kept beside its two references; four weights of the load, and six of each reference
    assert sizes == [2, 4 + 6 * 4]


@pytest.fixture
def learnings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of observations, each time that weights are learnt from some."""
    found: list[int] = []

    def counted(
        common: Floats, covariance: Floats, private: Private, noise: float, rest: Floats
    ) -> tuple[Floats, Floats]:
        found.append(len(rest))
        return learnt(common, covariance, private, noise, rest)

    monkeypatch.setattr(effects, "learnt", counted)
    return found


def _rules(fitted: Effects, fractions: dict[str, float], partner: str = "b") -> Rules:
    """Of a plan with a job that kept these fractions beside another, by GPU type."""
    nodes = [
        Node(name=t, gpu_type=t, gpus=1, cpu_millis=1, memory_bytes=1, replicas=2, gpu_memory_bytes=1)
        for t in ("K80", "V100")
    ]
    shared = tuple(
        Shared(gpu_type=t, partners=(partner,), usages=(_used(partner),), fraction=fraction, at_s=0.0)
        for t, fraction in fractions.items()
    )
    job = Job(name="a", gpus=1, usage=dict.fromkeys(("K80", "V100"), _used("a")), shared=shared)
    config = PlanConfig(policy="las", predictors=dict.fromkeys(("K80", "V100"), fitted))
    return Rules(nodes, [job], config, now=0.0)


def _used(model: str) -> Usage:
    return Usage(compute=0.5, bandwidth=0.1, model=model)


def test_plans_with_the_same_observations_on_a_gpu_type_use_one_predictor(learnings: list[int]) -> None:
    fitted = replace(EFFECTS)
    first = _rules(fitted, {"K80": 0.7, "V100": 0.8})
    predictors = [first.predictor(gpu_type) for gpu_type in ("K80", "V100")]
    assert learnings == [1, 1]
    second = _rules(fitted, {"K80": 0.7, "V100": 0.9})
    assert second.predictor("K80") is predictors[0]
    assert learnings == [1, 1]
    assert second.predictor("V100").fractions((_used("a"), _used("b"))) > predictors[1].fractions(
        (_used("a"), _used("b"))
    )
    assert learnings == [1, 1, 1]
    _rules(replace(EFFECTS), {"K80": 0.7}).predictor("K80")
    assert learnings == [1, 1, 1, 1], "others were fitted"


def test_only_some_corrected_predictors_are_kept(learnings: list[int]) -> None:
    fitted = replace(EFFECTS)
    kept = effects._CORRECTED
    for number in range(kept + 1):
        fitted.corrected([Observation(_used("a"), (_used("b"),), 0.5 + number / 100)])
    assert len(learnings) == kept + 1
    for number in range(kept, 0, -1):
        fitted.corrected([Observation(_used("a"), (_used("b"),), 0.5 + number / 100)])
    assert len(learnings) == kept + 1
    fitted.corrected([Observation(_used("a"), (_used("b"),), 0.5)])
    assert len(learnings) == kept + 2, "the oldest was forgotten"
