"""Reports become progress that never falls within a run."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from support.extender.cluster import NOW, job
from synergy_api.length import trained_seconds
from synergy_api.parts.progress import Progress
from synergy_api.timestamps import format_time
from synergy_extender.leases.reports import Report, Reported, due, outdated, progress_after, repaired


def progress(run: int, steps: int, checkpoint: int = 0, at: float = NOW - 10) -> dict[str, Any]:
    return {"run": run, "steps": steps, "checkpointSteps": checkpoint, "updatedAt": format_time(at)}


def test_a_report_is_written_as_it_is() -> None:
    report = Report(step=250, checkpoint_step=200, steps_per_second=2.5)
    assert progress_after(job("j"), Reported("uid-j", 3, report), NOW) == Progress(
        run=3,
        steps=250,
        checkpoint_steps=200,
        steps_per_second=2.5,
        percent=25,
        updated_at=format_time(NOW),
    )


def test_what_was_sent_stays_known_while_later_reports_do_not_tell_it() -> None:
    sent = Report(step=250, sent_bytes_per_step=4000, world_size=4)
    known = progress_after(job("j"), Reported("uid-j", 3, sent), NOW)
    assert (known.sent_bytes_per_step, known.world_size) == (4000, 4)
    before = job("j", status={"phase": "Running", "progress": known.to_wire()})
    later = progress_after(before, Reported("uid-j", 4, Report(step=260)), NOW)
    assert (later.sent_bytes_per_step, later.world_size) == (4000, 4)


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 2000)), min_size=1))
def test_within_one_run_steps_never_fall(reports: list[tuple[int, int]]) -> None:
    view, steps = job("j"), 0
    for step, checkpoint in reports:
        after = progress_after(view, Reported("uid-j", 1, Report(step=step, checkpoint_step=checkpoint)), NOW)
        assert after.steps == max(steps, step)
        assert after.percent <= 100
        steps = after.steps
        view = job("j", status={"progress": after.to_wire()})


def test_what_is_left_in_time_is_known_from_what_has_trained() -> None:
    status = {"progress": {**progress(1, 5), "trainedSeconds": 90.0}}
    view = job("j", spec={"steps": None, "maxRunSeconds": 200}, status=status)
    report = Report(step=9, trained_seconds=100.0, paused_seconds=20.0)
    after = progress_after(view, Reported("uid-j", 1, report), NOW)
    assert (after.trained_seconds, after.paused_seconds, after.percent) == (100.0, 20.0, 50)
    late = progress_after(view, Reported("uid-j", 1, Report(step=9, trained_seconds=80.0)), NOW)
    assert late.trained_seconds == 90.0


def test_time_that_is_in_no_checkpoint_does_not_count() -> None:
    """The last checkpoint of run 1 could not be written: run 2 begins with the time of the one before."""
    last = {"run": 1, "outcome": "Yielded", "step": 5, "trainedSeconds": 60.0}
    told = {
        "progress": {**progress(1, 9, 5), "trainedSeconds": 200.0},
        "service": {"run": 1, "endedRun": 1, "last": last},
    }
    view = job("j", spec={"steps": None, "maxRunSeconds": 200}, status=told)
    assert trained_seconds(view.status) == 60.0
    found = repaired(view)
    assert found is not None
    assert (found.trained_seconds, found.steps, found.percent) == (60.0, 5, 30)
    after = progress_after(view, Reported("uid-j", 2, Report(step=6, trained_seconds=61.0)), NOW)
    assert after.trained_seconds == 61.0


def test_epochs_count_once_their_steps_are_known() -> None:
    view = job("j", spec={"steps": None, "epochs": 4})
    assert progress_after(view, Reported("uid-j", 1, Report(step=50)), NOW).percent == 0
    after = progress_after(view, Reported("uid-j", 1, Report(step=50, epoch_steps=25)), NOW)
    assert (after.epoch_steps, after.percent) == (25, 50)


def test_metrics_stay_until_others_come() -> None:
    view = job("j", status={"progress": {**progress(1, 5), "metrics": {"loss": 0.5}}})
    assert progress_after(view, Reported("uid-j", 1, Report(step=6)), NOW).metrics == {"loss": 0.5}
    newer = Reported("uid-j", 1, Report(step=6, metrics={"loss": 0.4}))
    assert progress_after(view, newer, NOW).metrics == {"loss": 0.4}


def test_metrics_that_are_all_no_numbers_any_more_are_shown_no_longer() -> None:
    view = job("j", status={"progress": {**progress(1, 5), "metrics": {"loss": 0.5}}})
    assert progress_after(view, Reported("uid-j", 1, Report(step=6, metrics={})), NOW).metrics is None


@pytest.mark.parametrize(
    "metrics", [{"1": 1.0}, {"a" * 33: 1.0}, {"a b": 1.0}, {"loss": float("nan")}, {f"m{n}": 1.0 for n in range(9)}]
)
def test_metrics_are_bounded(metrics: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Report(step=1, metrics=metrics)


def test_an_early_end_is_told_by_the_last_report_or_by_the_run_itself() -> None:
    before = Progress.model_validate({**progress(1, 5)})
    after = before.model_copy(update={"ended_early": "enough"})
    assert due(before, after, NOW - 9, last=True)
    last = {"run": 1, "outcome": "Succeeded", "step": 5, "endedEarly": "enough", "trainedSeconds": 12.5}
    view = job("j", status={"progress": progress(1, 5), "service": {"run": 1, "endedRun": 1, "last": last}})
    found = repaired(view)
    assert found is not None
    assert (found.ended_early, found.trained_seconds, found.steps) == ("enough", 12.5, 5)


@pytest.mark.parametrize(
    ("status", "uid", "want"),
    [
        ({}, "uid-j", False),
        ({}, "uid-earlier", True),
        ({"progress": progress(1, 5)}, "uid-j", False),
        ({"progress": progress(2, 5)}, "uid-j", False),
        ({"progress": progress(3, 5)}, "uid-j", True),
        ({"progress": progress(2, 5), "service": {"run": 2, "endedRun": 2}}, "uid-j", False),
    ],
    ids=["first", "other job", "older run has reported", "same run", "newer run has reported", "ended"],
)
def test_a_report_counts_for_its_own_job_until_a_newer_run_has_reported(
    status: dict[str, Any], uid: str, want: bool
) -> None:
    assert outdated(job("j", status=status), Reported(uid, 2, Report(step=6))) is want


def test_a_new_run_may_begin_below_where_a_failed_one_was() -> None:
    view = job("j", status={"progress": progress(1, 500, 400)})
    assert progress_after(view, Reported("uid-j", 2, Report(step=401)), NOW).steps == 401


@pytest.mark.parametrize(
    ("before", "after_s", "last", "want"),
    [
        (None, 0, False, True),
        (progress(1, 5, at=NOW), 1.9, False, False),
        (progress(1, 5, at=NOW), 2.0, False, True),
        (progress(2, 5, at=NOW), 0.1, False, True),
        (progress(1, 5, at=NOW), 0.1, True, True),
        (progress(1, 9, at=NOW), 0.1, True, False),
    ],
    ids=["first", "too soon", "time", "other run", "last", "last with nothing new"],
)
def test_progress_is_written_every_two_seconds_and_at_the_end(
    before: dict[str, Any] | None, after_s: float, last: bool, want: bool
) -> None:
    view = job("j", status={"progress": before} if before else {})
    now = NOW + after_s
    after = progress_after(view, Reported("uid-j", 1, Report(step=9)), now)
    assert due(view.status.progress, after, now, last=last) is want


def left(run: int, outcome: str, step: int | None = None, ended: int | None = None) -> dict[str, Any]:
    last = {"run": run, "outcome": outcome} | ({} if step is None else {"step": step})
    return {"service": {"run": run, "endedRun": run if ended is None else ended, "last": last}}


@pytest.mark.parametrize(
    ("status", "want"),
    [
        ({}, None),
        ({**left(1, "Yielded", 300), "progress": progress(1, 280)}, (1, 300)),
        ({**left(1, "Yielded", 300), "progress": progress(1, 300)}, None),
        ({**left(2, "Yielded", 300), "progress": progress(1, 280)}, (2, 300)),
        ({**left(1, "Yielded", 300), "progress": progress(2, 320)}, None),
        ({**left(1, "Yielded", 300)}, (1, 300)),
        ({**left(1, "Failed"), "progress": progress(1, 280, 250)}, (1, 250)),
        ({**left(1, "Evicted"), "progress": progress(1, 250, 250)}, None),
        ({**left(1, "Failed")}, None),
        ({**left(1, "Succeeded"), "progress": progress(1, 990, 900)}, (1, 1000)),
        ({**left(1, "Profiled", 55)}, None),
        ({**left(1, "Yielded", 300, ended=0), "progress": progress(1, 280)}, None),
    ],
)
def test_what_the_newest_ended_run_said_on_leaving_counts(status: dict[str, Any], want: tuple[int, int] | None) -> None:
    fixed = repaired(job("j", status=status))
    assert (None if fixed is None else (fixed.run, fixed.steps)) == want
    if fixed is not None:
        assert fixed.checkpoint_steps >= 0
        assert repaired(job("j", status={**status, "progress": fixed.to_wire()})) is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"step": -1},
        {"step": 1, "job": "other"},
        {"step": 1, "steps_per_second": float("nan")},
        {"step": 1, "sent_bytes_per_step": 0},
        {"step": 1, "world_size": 1},
    ],
)
def test_a_bad_report_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Report.model_validate(body)
