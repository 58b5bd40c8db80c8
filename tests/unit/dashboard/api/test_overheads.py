"""How long runs hold GPUs without a step: what they take beyond their steps at the planned speed."""

from dataclasses import replace
from typing import Any

import pytest

from synergy_dashboard.api.past.overheads import overheads
from synergy_dashboard.facts import JobFact, RunFact, Share


def job(name: str, steps: int = 100, phase: str = "Succeeded") -> JobFact:
    return JobFact(
        uid=name, namespace="n", name=name, tenant="t", created_s=0.0, gpus=1, gpu_types=(), steps=steps, weight=1.0,
        phase=phase,
    )  # fmt: skip


def run(number: int, seconds: float | None, *, starts: float | None = 1.0, **more: Any) -> RunFact:
    known = {"uid": "j", "purpose": "Train", "gpu_type": "V100", "gpus": 1, "shares": (), "steps_per_s": 10.0}
    ended = None if seconds is None else 1000.0 * number + seconds
    started = None if starts is None else 1000.0 * number + starts
    return RunFact(run=number, granted_s=1000.0 * number, started_s=started, ended_s=ended, **{**known, **more})


def test_what_a_run_takes_beyond_its_steps_is_its_start() -> None:
    jobs = [(job("a"), [run(1, 13.0)]), (job("b", steps=200), [run(1, 25.0)])]
    assert overheads(jobs, (), {}) == (pytest.approx(4.0), 0.0)


def test_a_run_takes_until_its_job_is_done() -> None:
    done = replace(job("a"), finished_s=1017.0)
    assert overheads([(done, [run(1, 13.0)])], (), {}) == (pytest.approx(7.0), 0.0)


def test_what_further_runs_take_beyond_the_first_start_is_theirs() -> None:
    jobs = [(job("a"), [run(1, 14.0)]), (job("b"), [run(1, 10.0), run(2, 8.0), run(3, 8.0)])]
    assert overheads(jobs, (), {}) == (pytest.approx(4.0), pytest.approx(6.0))


@pytest.mark.parametrize(
    ("one", "runs", "resized"),
    [
        (job("a", phase="Failed"), [run(1, 50.0), run(2, 50.0)], ()),
        (job("a"), [run(1, 50.0), run(2, 50.0, steps_per_s=5.0)], ()),
        (job("a"), [run(1, 50.0), run(2, 50.0, seen=False)], ()),
        (job("a"), [run(1, 50.0), run(2, None)], ()),
        (job("a"), [run(1, 50.0, steps_per_s=0.0), run(2, 50.0, steps_per_s=0.0)], ()),
        (job("a"), [run(1, 50.0), run(2, 50.0)], ("a",)),
    ],
)
def test_where_that_is_not_known_the_starts_of_workers_stand_for_it(
    one: JobFact, runs: list[RunFact], resized: tuple[str, ...]
) -> None:
    assert overheads([(one, runs)], resized, {}) == (1.0, 1.0)


def test_without_runs_nothing_is_known_and_no_overhead_is_negative() -> None:
    assert overheads([], (), {}) == (0.0, 0.0)
    assert overheads([(job("a"), [run(1, None, starts=None)])], (), {}) == (0.0, 0.0)
    assert overheads([(job("fast"), [run(1, 8.0)])], (), {}) == (0.0, 0.0)


def on_node(uid: str, begin: float, end: float, **more: Any) -> RunFact:
    share = Share(node="n", gpus=1, cpu_millis=1, memory_bytes=1)
    return RunFact(
        uid=uid, run=1, purpose="Train", gpu_type="V100", gpus=1, shares=(share,), granted_s=begin, ended_s=end,
        steps_per_s=10.0, **more,
    )  # fmt: skip


def test_the_time_until_free_gpus_are_given_counts() -> None:
    """The second job could have had the first one's GPU at 20; it got it at 22."""
    jobs = [(job("a"), [on_node("a", 0.0, 20.0)]), (job("b"), [on_node("b", 22.0, 34.0)])]
    assert overheads(jobs[1:], (), {"n": 1}) == (pytest.approx(24.0), 0.0), "it was free all the time"
    assert overheads(jobs, (), {"n": 1}) == (pytest.approx((10.0 + 4.0) / 2), 0.0)
    assert overheads(jobs, (), {}) == (pytest.approx((10.0 + 2.0) / 2), 0.0), "of an unknown node nothing is known"
    revoked = [(job("a", phase="Failed"), [on_node("a", 0.0, 20.0, revoked_s=15.0)]), jobs[1]]
    assert overheads(revoked, (), {"n": 1}) == (pytest.approx(9.0), 0.0), "a plan took it at 15"


def test_gpus_that_others_came_and_left_again_are_free_since_the_last_lack() -> None:
    """One GPU is free from 5 on, though short runs use the other one until the second job begins at 30."""
    ends = {"long": (0.0, 5.0), "x": (0.0, 20.0), "y": (21.0, 22.0), "z": (23.0, 24.0)}
    others = [on_node(uid, begin, end) for uid, (begin, end) in ends.items()]
    late = [(job("b"), [on_node("b", 30.0, 42.0)])]
    assert overheads(late, (), {"n": 2}, others) == (pytest.approx(37.0 - 10.0), 0.0)
    assert overheads(late, (), {"n": 1}, others) == (pytest.approx(18.0 - 10.0), 0.0)


def test_a_job_that_waited_for_something_else_is_no_overhead() -> None:
    jobs = [(job("a"), [on_node("a", 0.0, 10.0)]), (job("b"), [on_node("b", 500.0, 512.0)])]
    assert overheads(jobs, (), {"n": 1}) == (pytest.approx(1.0), 0.0)


@pytest.mark.parametrize("purpose", ["Train", "Profile"])
def test_gpus_that_a_run_outside_of_the_export_holds_are_not_free(purpose: str) -> None:
    """Of a job that came before, of one that the user may not see, or a profile run."""
    share = (Share(node="n", gpus=1, cpu_millis=1, memory_bytes=1),)
    other = replace(run(1, 0.0), uid="other", purpose=purpose, granted_s=900.0, ended_s=996.0, shares=share)
    one = replace(job("j"), created_s=950.0), [run(1, 13.0, shares=share)]
    assert overheads([one], (), {"n": 1}, [other]) == (pytest.approx(7.0), 0.0)
    assert overheads([one], (), {"n": 1}) == (pytest.approx(53.0), 0.0)


def test_the_time_in_which_a_job_is_measured_is_no_overhead() -> None:
    share = (Share(node="n", gpus=1, cpu_millis=1, memory_bytes=1),)
    profile = replace(run(1, 0.0), purpose="Profile", granted_s=960.0, ended_s=998.0, shares=share)
    one = replace(job("j"), created_s=950.0), [run(2, 13.0, shares=share)]
    moved = replace(one[1][0], granted_s=1000.0, started_s=1001.0, ended_s=1013.0)
    assert overheads([(one[0], [moved])], (), {"n": 2}, [replace(profile, uid="j")]) == (pytest.approx(5.0), 0.0)
