"""The predictors on measurements of a made-up GPU whose law is known."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from synergy_core.colocation.predictors.effects import Effects, fit_effects
from synergy_core.colocation.predictors.evaluation import (
    calibration,
    family,
    judged,
    judged_after,
    score,
    threshold_accuracy,
)
from synergy_core.colocation.predictors.generic import EFFECTS, SUMS
from synergy_core.colocation.predictors.model_format import SharingModel, model_text, parse_model
from synergy_core.colocation.predictors.references import References
from synergy_core.colocation.predictors.sums import fit_sums
from synergy_core.model.measurement import Observation, Predictor, SharedMeasurement
from synergy_core.model.snapshot_format import SnapshotError
from synergy_core.model.usage import Usage

SENSITIVITY = {"AlexNet": 0.0, "Bert2": -0.12, "Cnn3": 0.05, "Dcgan": -0.03, "Eff4": 0.02}
COMPUTE = {"AlexNet": 0.3, "Bert2": 0.8, "Cnn3": 0.5, "Dcgan": 0.6, "Eff4": 0.2}


def job(model: str, batch: int) -> Usage:
    compute = min(1.0, COMPUTE[model] * (0.8 + 0.1 * batch))
    return Usage(model=model, configuration=str(batch), compute=compute, bandwidth=0.5 * compute)


def fraction(own: Usage, partner: Usage) -> float:
    """The law: the load costs both, and a model has a sensitivity of its own to the partner's load."""
    return 1.0 - 0.3 * own.compute * partner.compute + SENSITIVITY[own.model] * partner.compute


def measured(noise: float = 0.01) -> list[SharedMeasurement]:
    draw = np.random.default_rng(7)
    jobs = [job(model, batch) for model in COMPUTE for batch in (1, 2, 4)]
    return [
        SharedMeasurement((a, b), (fraction(a, b) + draw.normal(0, noise), fraction(b, a) + draw.normal(0, noise)))
        for a, b in combinations_with_replacement(jobs, 2)
    ]


def test_sums_find_a_law_that_is_linear_in_the_sums() -> None:
    jobs = [Usage(compute=compute, bandwidth=bandwidth) for compute, bandwidth in ((0.1, 0.5), (0.6, 0.2), (0.9, 0.9))]
    linear = [
        SharedMeasurement((a, b), (1.1 - 0.2 * (a.compute + b.compute) - 0.1 * (a.bandwidth + b.bandwidth),) * 2)
        for a, b in combinations_with_replacement(jobs, 2)
    ]
    found = fit_sums(linear)
    assert (found.base, found.compute, found.bandwidth) == pytest.approx((1.1, -0.2, -0.1))
    assert found.fractions(jobs) == pytest.approx((1.1 - 0.2 * 1.6 - 0.1 * 1.6,) * 3)
    assert found.fractions(jobs[:1]) == (1.0,)


def test_effects_tell_models_apart_that_use_the_gpu_alike() -> None:
    model = fit_effects(measured())
    for a, b in ((job("Bert2", 2), job("Eff4", 4)), (job("Cnn3", 1), job("Dcgan", 4))):
        assert model.fractions((a, b)) == pytest.approx((fraction(a, b), fraction(b, a)), abs=0.02)
    assert model.fractions((job("Bert2", 1),)) == (1.0,)


def test_what_two_models_do_to_each_other_counts_once_for_each_partner() -> None:
    one = Effects(
        names=(("pair", "A beside B"),), mean=np.array([-0.1]), covariance=np.eye(1), variances={"pair": 0.01}
    )
    a, b = (Usage(compute=0.0, bandwidth=0.0, model=name) for name in "AB")
    assert one.fractions((a, b)) == pytest.approx((0.9, 1.0))
    assert one.fractions((a, b, b)) == pytest.approx((0.8, 1.0, 1.0))


def test_more_partners_cost_more() -> None:
    model = fit_effects(measured())
    a, b, c = (job(name, 4) for name in ("Bert2", "Cnn3", "Dcgan"))
    two, three = model.fractions((a, b)), model.fractions((a, b, c))
    assert three[0] < two[0] - 0.05
    assert all(0.0 < one < 1.0 for one in three)


def test_the_order_of_jobs_does_not_matter() -> None:
    model = fit_effects(measured())
    a, b, c = (job(name, 2) for name in ("Bert2", "Cnn3", "Eff4"))
    assert model.fractions((c, a, b)) == pytest.approx(
        (*model.fractions((a, b, c))[2:], *model.fractions((a, b, c))[:2])
    )


def test_an_observed_pair_tells_most_of_the_same_models_beside_each_other() -> None:
    model = EFFECTS
    own, partner, other = job("Cnn3", 1), job("Dcgan", 1), job("Eff4", 4)
    told = model.fractions((own, partner))[0]
    after = model.corrected([Observation(own, (partner,), told - 0.2)])
    again, elsewhere = (
        model.fractions((job("Cnn3", 4), one))[0] - after.fractions((job("Cnn3", 4), one))[0]
        for one in (job("Dcgan", 4), other)
    )
    assert again > elsewhere + 0.02


def test_an_observed_pair_tells_little_of_jobs_of_other_models() -> None:
    """The load's part was fitted to hundreds of pairs."""
    own, partner = job("Cnn3", 1), job("Dcgan", 1)
    after = EFFECTS.corrected([Observation(own, (partner,), EFFECTS.fractions((own, partner))[0] - 0.2)])
    others = job("Bert2", 2), job("Eff4", 4)
    assert after.fractions(others)[0] == pytest.approx(EFFECTS.fractions(others)[0], abs=0.02)


def test_one_observation_tells_much_of_a_model_that_was_never_seen() -> None:
    known = [one for one in measured() if all(usage.model != "Bert2" for usage in one.usages)]
    model = fit_effects(known)
    own, seen_with, asked_with = job("Bert2", 2), job("Eff4", 4), job("Cnn3", 2)
    truth = fraction(own, asked_with)
    before = model.fractions((own, asked_with))[0]
    corrected = model.corrected([Observation(own, (seen_with,), fraction(own, seen_with))])
    after = corrected.fractions((own, asked_with))[0]
    assert abs(after - truth) < 0.75 * abs(before - truth)
    assert before - truth > 0.03
    assert model.corrected([]) is model


def test_the_evaluation_keeps_whole_families_out() -> None:
    seen_in_fits = []

    def fit(measurements: object) -> object:
        seen_in_fits.append({family(usage.model) for one in measurements for usage in one.usages})  # type: ignore[attr-defined]
        return fit_effects(measurements)  # type: ignore[arg-type]

    answers = judged(measured(), fit)  # type: ignore[arg-type]
    assert seen_in_fits == [
        {"AlexNet", "Bert", "Cnn", "Dcgan", "Eff"} - {name} for name in sorted({family(m) for m in COMPUTE})
    ]
    assert {one.family for one in answers} == {"AlexNet", "Bert", "Cnn", "Dcgan", "Eff"}
    found = score(answers)
    assert found.mae < score(judged(measured(), fit_sums)).mae
    assert 0.5 <= found.commoner <= 1.0
    assert sum(one.jobs for one in calibration(answers)) == 2 * len(answers)


def test_a_bound_on_the_load_tells_what_the_load_decides() -> None:
    computes = {"A": 0.2, "B": 0.5, "C": 0.6, "D": 0.9}
    jobs = [Usage(model=name, compute=compute, bandwidth=0.0) for name, compute in computes.items()]
    pairs = list(combinations_with_replacement(jobs, 2))
    decided = [
        SharedMeasurement(pair, (0.9 if pair[0].compute + pair[1].compute <= 1.05 else 0.7,) * 2) for pair in pairs
    ]
    assert threshold_accuracy(decided) > 0.8
    turned = [SharedMeasurement(one.usages, (1.6 - one.fractions[0],) * 2) for one in decided]
    assert threshold_accuracy(turned) < 0.5


def test_observations_bring_an_unseen_job_nearer() -> None:
    errors = [score(judged_after(measured(), fit_effects, seen)).mae for seen in (0, 1, 3)]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize(
    ("name", "expected"), [("ResNet18", "ResNet"), ("MobileNetV3", "MobileNet"), ("VGG", "VGG"), ("gpt-2", "gpt")]
)
def test_families(name: str, expected: str) -> None:
    assert family(name) == expected


def test_too_few_measurements_are_refused() -> None:
    few = measured()[:2]
    for fit in (fit_sums, fit_effects):
        with pytest.raises(ValueError, match="2 measurements are too few"):
            fit(few)
    with pytest.raises(ValueError, match="no measurement to judge"):
        score([])


def model_json() -> str:
    some = measured()
    return model_text(
        SharingModel(gpu_type="T4", mps=False, measurements=3, sums=fit_sums(some), effects=fit_effects(some))
    )


def test_a_model_is_read_back_as_it_was_written() -> None:
    text = model_json()
    read = parse_model(text)
    assert (read.gpu_type, read.mps, read.measurements) == ("T4", False, 3)
    assert model_text(read) == text
    a, b = job("Bert2", 2), job("Eff4", 4)
    assert read.effects.fractions((a, b)) == pytest.approx(fit_effects(measured()).fractions((a, b)), abs=1e-5)


def test_with_references_a_model_predicts_by_them_and_is_read_back() -> None:
    one, other, new = (Usage(compute=0.4, bandwidth=0.1, model=name) for name in ("A", "B", "C"))
    pairs = [
        SharedMeasurement((one, other), (0.7, 0.4)),
        SharedMeasurement((other, one), (0.5, 0.9)),
        SharedMeasurement((one, one), (0.6, 0.6)),
    ]
    fitted = parse_model(model_json())
    assert fitted.predictor(sums=False) is fitted.effects
    assert fitted.predictor(sums=True) is fitted.sums
    text = model_text(replace(fitted, references=References.measured(pairs)))
    read = parse_model(text)
    assert model_text(read) == text
    assert read.predictor(sums=True) == read.sums
    told = read.predictor(sums=False)
    assert told.fractions((one, other)) == pytest.approx((0.8, 0.45))
    assert told.fractions((one, one)) == pytest.approx((0.6, 0.6))
    learnt = told.corrected([Observation(new, (other,), 0.8), Observation(other, (new,), 0.45)])
    assert learnt.fractions((new, one)) == pytest.approx((0.6, 0.6), abs=0.05), "like A; B beside B is a guess"
    with pytest.raises(ValueError, match="no pair of the reference models was measured"):
        References.measured([SharedMeasurement((replace(one, model=""), replace(one, model="")), (0.5, 0.5))])


@pytest.mark.parametrize(
    ("kept", "models", "message"),
    [
        ([[0.5]], ["A", "B"], r"^references\.kept: has not a row and a column"),
        ([[None]], ["A"], r"^references\.kept: has no pair"),
        ([[0.5, 0.5], [0.5, 0.5]], ["A", "A"], r"^references\.models: names one twice"),
        ([[1.5]], ["A"], r"^references\.kept\[0\]\[0\]: input should be less than or equal to 1"),
    ],
)
def test_bad_references_are_refused_by_field(kept: list[list[float | None]], models: list[str], message: str) -> None:
    document = {**json.loads(model_json()), "references": {"models": models, "kept": kept}}
    with pytest.raises(SnapshotError, match=message):
        parse_model(json.dumps(document))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"format": 1', '"format": 2', r"^format: "),
        ('"mps": false', '"mps": false, "spam": 1', r"^spam: unknown field"),
        ('["product", ""]', '["spam", ""]', r"^effects\.names\[\d+\]\[0\]: 'spam' is no kind of weight"),
        ('"mean": [', '"mean": [0.5, ', r"^effects\.mean: has \d+ numbers for \d+ names"),
        ('"covariance": [', '"covariance": [[0.1], ', r"^effects\.covariance: is not the lower triangle"),
        ('"together": ', '"apart": ', r"^effects\.variances\.together: missing"),
    ],
)
def test_a_bad_model_names_the_field(old: str, new: str, message: str) -> None:
    text = model_json()
    assert old in text
    with pytest.raises(SnapshotError, match=message):
        parse_model(text.replace(old, new))


def counted(usage: Usage, *, known: bool = True) -> Usage:
    """The same job by counters: a third of its utilisation, which is known beside them or not."""
    beside = {"utilization": usage.compute, "memory_utilization": usage.bandwidth} if known else {}
    return replace(usage, compute=usage.compute / 3, bandwidth=usage.bandwidth / 3, counters=True, **beside)


@pytest.mark.parametrize("fit", [fit_sums, fit_effects])
def test_a_predictor_gets_the_figures_that_it_was_fitted_to(fit: Callable[..., Predictor]) -> None:
    plain = measured()
    by_counters = [SharedMeasurement(tuple(map(counted, one.usages)), one.fractions) for one in plain]
    to_utilisation, to_counters = fit(plain), fit(by_counters, counters=True)
    for one in plain[:9]:
        both = [counted(usage) for usage in one.usages]
        assert to_utilisation.fractions(both) == to_utilisation.fractions(one.usages)
        assert to_counters.fractions(both) == pytest.approx(to_utilisation.fractions(one.usages), abs=0.03)
        observation = Observation(both[0], (both[1],), 0.4)
        learnt = to_utilisation.corrected([observation]).fractions(both)
        assert learnt == to_utilisation.corrected([replace(observation, own=one.usages[0])]).fractions(one.usages)


def test_utilisation_stands_for_unknown_counters_as_an_upper_bound() -> None:
    plain, counters = Usage(compute=0.9, bandwidth=0.6), Usage(compute=0.3, bandwidth=0.2, counters=True)
    assert plain.seen_by(counters=True) == plain.seen_by(counters=False) == plain
    assert counters.seen_by(counters=False) == counters, "nothing else is known"
    half = replace(counters, utilization=0.8)
    assert half.seen_by(counters=False) == Usage(compute=0.8, bandwidth=0.2, utilization=0.8)
    predictor = replace(SUMS, counters=True)
    assert predictor.fractions([plain, plain]) < predictor.fractions([counters, counters])


def test_a_model_says_what_it_was_fitted_to() -> None:
    plain = measured()
    for counters in (False, True):
        sums, effects = fit_sums(plain, counters=counters), fit_effects(plain, counters=counters)
        model = SharingModel(gpu_type="T4", mps=True, measurements=1, sums=sums, effects=effects)
        assert ('"counters": true' in model_text(model)) == counters
        back = parse_model(model_text(model))
        assert (back.sums.counters, back.effects.counters) == (counters, counters)
