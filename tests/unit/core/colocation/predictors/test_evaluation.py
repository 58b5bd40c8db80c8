"""Scores and calibration of predictions, worked out by hand."""

import pytest

from synergy_core.colocation.predictors.evaluation import Judged, calibration, score

ANSWERS = [
    Judged("A", (0.90, 0.86), (0.95, 0.85)),
    Judged("B", (0.95, 0.80), (0.90, 0.80)),
    Judged("C", (0.88, 0.88), (0.96, 0.70)),
    Judged("D", (0.50,), (0.60,)),
]
"""All four jobs keep 0.85 and are told to; one of two; told so, but only one does; neither."""


def test_sharing_is_right_where_every_job_keeps_enough() -> None:
    found = score(ANSWERS)
    assert found.measurements == 4
    assert found.mae == pytest.approx((0.05 + 0.01 + 0.05 + 0.0 + 0.08 + 0.18 + 0.1) / 7)
    assert (found.share_accuracy, found.commoner) == (0.75, 0.75)


def test_or_where_they_keep_enough_on_average() -> None:
    found = score(ANSWERS)
    assert (found.mean_accuracy, found.commoner_mean) == (0.75, 0.5)


def test_just_enough_is_enough() -> None:
    found = score([Judged("A", (0.85,), (0.9,))])
    assert (found.share_accuracy, found.mean_accuracy) == (1.0, 1.0)


def test_calibration_compares_the_jobs_of_each_step() -> None:
    nearly, half = calibration([Judged("A", (0.71, 0.52), (0.6, 0.5)), Judged("B", (0.73,), (0.8,))], width=0.1)[::-1]
    assert (half.low, half.high, half.jobs) == (pytest.approx(0.5), pytest.approx(0.6), 1)
    assert (half.predicted, half.true, half.deviation) == (0.52, 0.5, 0.0)
    assert (nearly.low, nearly.high, nearly.jobs) == (pytest.approx(0.7), pytest.approx(0.8), 2)
    assert (nearly.predicted, nearly.true, nearly.deviation) == pytest.approx((0.72, 0.7, 0.1))
