"""Starts beside what was forecast of them."""

from math import inf

import pytest

from synergy_extender.forecasts.question import StartForecast
from synergy_extender.forecasts.record import HORIZONS, Record, Score


def forecast(p50: float, spread: float = 100.0, job: str = "j") -> StartForecast:
    return StartForecast(job, p50 - spread, p50, p50 + spread)


def test_a_start_is_compared_with_the_newest_forecast_that_is_old_enough() -> None:
    record = Record()
    for made_at in range(0, 4000, 60):
        record.keep(float(made_at), forecast(5000.0 + made_at))
    scores = {score.horizon: score for score in record.started("j", 4000.0)}
    assert scores.keys() == {"5m", "1h"}
    assert scores["5m"].error_s == 5000 + 3660 - 4000
    assert scores["1h"].error_s == pytest.approx(1000 + 400, abs=3600 / 8)


@pytest.mark.parametrize(
    ("at", "place"), [(1100.0, "inside"), (899.5, "inside"), (898.0, "early"), (1101.5, "late"), (1000.0, "inside")]
)
def test_where_a_start_lies_beside_the_range(at: float, place: str) -> None:
    record = Record()
    record.keep(0.0, forecast(1000.0))
    assert record.started("j", at) == [Score("5m", abs(at - 1000.0), place)]  # type: ignore[arg-type]


def test_a_forecast_without_a_range_has_an_error_and_no_place() -> None:
    record = Record()
    record.keep(0.0, forecast(1000.0, spread=0.0))
    assert record.started("j", 1010.0) == [Score("5m", 10.0, None)]


def test_what_was_beyond_the_horizon_came_early() -> None:
    record = Record()
    record.keep(0.0, StartForecast("j", 2000.0, inf, inf))
    assert record.started("j", 1010.0) == [Score("5m", inf, "early")]


def test_a_start_counts_once_and_jobs_that_are_gone_are_forgotten() -> None:
    record = Record()
    record.keep(0.0, forecast(1000.0))
    record.keep(0.0, forecast(1000.0, job="gone"))
    record.forget_all_but({"j"})
    assert list(record) == ["j"]
    assert record.started("j", 1000.0)
    assert not record.started("j", 1000.0)
    assert not len(record)


def test_a_day_of_forecasts_is_kept_in_little_room() -> None:
    record = Record()
    for made_at in range(0, 3 * 86_400, 60):
        record.keep(float(made_at), forecast(1e6))
    kept = [len(one) for one in record._kept["j"].values()]
    assert len(kept) == len(HORIZONS)
    assert max(kept) <= 10
    assert len(record.started("j", 3.0 * 86_400)) == len(HORIZONS)
