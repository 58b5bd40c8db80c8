"""What is told of a day that was seen on a cluster."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from support.shared_day.figures import Figures, measured, medians
from support.shared_day.jobs import trace
from support.shared_day.size import SMALL, TYPES

BEGIN = 1000.0
HOUR = 3600.0


def span(gpu_type: str, due: float, until: float) -> SimpleNamespace:
    return SimpleNamespace(gpu_type=gpu_type, due=BEGIN + due, until=BEGIN + until)


def test_a_run_that_has_its_new_place_before_the_old_one_is_free_counts_to_its_end() -> None:
    job = replace(trace(SMALL, BEGIN)[0], arrival_s=BEGIN, gpus=2)
    seen: Any = SimpleNamespace(
        finished=BEGIN + HOUR,
        spans=[span(TYPES[0], 0.0, 0.5 * HOUR + 1.0), span(TYPES[1], 0.5 * HOUR, HOUR)],
    )
    found = measured(SMALL, [job], {job.name: seen})
    assert found.gpu_hours[job.tenant] == pytest.approx(2 * (HOUR + 1.0) / HOUR)
    assert (found.avg_jct_s, found.makespan_s, found.preemptions) == (HOUR, HOUR, 1)


def test_of_days_each_figure_has_its_own_median() -> None:
    days = [
        Figures(jct, span, 0.1, 0.9, moved, {"red": red})
        for jct, span, moved, red in ((1, 9, 4, 7), (2, 7, 6, 8), (3, 8, 5, 9))
    ]
    assert medians(days) == Figures(2, 8, 0.1, 0.9, 5, {"red": 8})
