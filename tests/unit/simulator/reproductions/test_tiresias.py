"""Tiresias in the simulator: the example of figure 7, promotion, and the authors' own traces."""

from typing import Any

import pytest

from support.simulator.simulation import server, simulated, times, traced
from synergy_core.model.config import PriorityQueues
from synergy_simulator.engine.outcome import Outcome

FIGURE_7 = ((2, 2), (1, 8), (2, 6))
"""(GPUs, duration) of the jobs 1 to 3; they arrive together at a machine with two GPUs."""


def _figure_7(policy: str, **queues: Any) -> Outcome:
    jobs = [traced(f"job-{n}", 0, duration, gpus=gpus) for n, (gpus, duration) in enumerate(FIGURE_7, start=1)]
    return simulated(jobs, server(2), policy=policy, round_s=1, queues=PriorityQueues(**queues), record=True)


def _sequence(outcome: Outcome) -> str:
    """Which job runs in each unit of time."""
    last = int(max(segment.end for segment in outcome.segments))
    owner = {
        unit: segment.job[-1] for segment in outcome.segments for unit in range(int(segment.start), int(segment.end))
    }
    return "".join(owner[unit] for unit in range(last))


@pytest.mark.parametrize(
    ("policy", "queues", "sequence", "average"),
    [
        ("srsf", {}, "1122222222333333", 28 / 3),
        ("2d-gittins", {"thresholds_gpu_s": (4.0,), "service_gpu_s": (4.0, 8.0, 12.0)}, "1122223322223333", 10.0),
        ("2d-las", {"thresholds_gpu_s": ()}, "1232123223223233", 35 / 3),
    ],
)
def test_figure_7(policy: str, queues: dict[str, Any], sequence: str, average: float) -> None:
    outcome = _figure_7(policy, **queues)
    assert _sequence(outcome) == sequence
    finished = [run.finish_s or 0.0 for run in outcome.runs]
    assert sum(finished) / 3 == pytest.approx(average)


def _stream(knob: float | None) -> Outcome:
    """A long job, and after it short ones that keep the only GPU busy."""
    shorts = [traced(f"short-{n:02}", 10 + 90 * n, 100) for n in range(40)]
    queues = PriorityQueues(thresholds_gpu_s=(150.0,), promote_knob=knob)
    return simulated([traced("long", 0, 600), *shorts], server(1), policy="2d-las", round_s=10, queues=queues)


def test_promotion_bounds_the_longest_wait() -> None:
    without, with_it = times(_stream(None))["long"], times(_stream(2.0))["long"]
    assert without == (0, 4600)
    # it runs 150 s, falls, and after 2 x 150 s is back for another 150 s, and so on
    assert with_it[1] is not None
    assert with_it[1] < 2100


@pytest.mark.parametrize("policy", ["2d-las", "2d-gittins"])
def test_promotion_bounds_the_wait_of_a_wide_job_that_never_started(policy: str) -> None:
    """Four GPUs that jobs of one GPU keep busy: they never fall free at once."""
    narrow = [traced(f"narrow-{n:03}", 95.0 * n, 370) for n in range(120)]
    jobs = sorted([*narrow, traced("wide", 100, 600, gpus=4)], key=lambda one: one.arrival_s)
    found = {}
    for knob in (None, 1.0):
        queues = PriorityQueues(thresholds_gpu_s=(3600.0,), promote_knob=knob, service_gpu_s=(370.0, 2400.0))
        found[knob] = times(simulated(jobs, server(4), policy=policy, round_s=60, queues=queues))["wide"]
    assert found[None] == (11675, 12275)
    # it may wait 1 x 3600 / 4 s, is promoted in the round after, and nobody passes it again
    assert found[1.0] == (1020, 1620)


def test_under_head_of_line_blocking_a_short_job_waits_behind_one_that_does_not_fit() -> None:
    jobs = [traced("runs", 0, 100), traced("wide", 1, 50, gpus=2), traced("short", 2, 10)]
    blocked = times(simulated(jobs, server(2), policy="yarn-cs", round_s=1000))
    assert blocked == {"runs": (0, 100), "wide": (100, 150), "short": (150, 160)}
    passed = times(simulated(jobs, server(2), policy="best-effort", round_s=1000))
    assert passed == {"runs": (0, 100), "wide": (100, 150), "short": (2, 12)}
