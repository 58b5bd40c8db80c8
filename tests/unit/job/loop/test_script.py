"""What a script may tell the loop that it runs in."""

import math

import pytest

import synergy_job
from synergy_job.loop.pauses import Pauses
from synergy_job.loop.script import Script, listening, report_what_fits


def test_finish_ends_the_loop_outside_a_cluster_too() -> None:
    seen = []
    for batch in synergy_job.iterate(range(10), steps=100):
        seen.append(batch)
        if batch == 3:
            synergy_job.finish()
    assert seen == [0, 1, 2, 3]


def test_finish_outside_the_loop_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="outside the loop over synergy_job"):
        synergy_job.finish("done")


def test_the_reason_is_one_short_line_and_never_empty() -> None:
    reasons: list[str] = []
    with listening(Script(reasons.append)):
        synergy_job.finish("a\nb  " + "c" * 300)
        synergy_job.finish("  ")
        synergy_job.finish("caf\udce9 is full")
    assert reasons == ["a b " + "c" * 196, "the script called finish()", r"caf\udce9 is full"]


def test_pause_and_report_outside_the_loop_do_nothing() -> None:
    with synergy_job.pause("sanity check"):
        synergy_job.report(loss=1.0)


def test_pauses_within_pauses_count_once() -> None:
    now = [10.0]
    pauses = Pauses(lambda: now[0])
    with listening(Script(lambda _: None, pauses)), synergy_job.pause():
        now[0] = 12.0
        with synergy_job.pause("save"):
            now[0] = 13.0
            assert pauses.seconds(13.0) == 3.0
        now[0] = 14.0
    assert pauses.seconds(100.0) == 4.0


def test_a_pause_ends_when_its_block_raises() -> None:
    now = [0.0]
    pauses = Pauses(lambda: now[0])

    def diverges() -> None:
        with synergy_job.pause():
            now[0] = 1.0
            raise ValueError("diverged")

    with listening(Script(lambda _: None, pauses)), pytest.raises(ValueError, match="diverged"):
        diverges()
    assert pauses.seconds(5.0) == 1.0


def test_the_newest_values_of_all_metrics_are_kept() -> None:
    script = Script(lambda _: None)
    with listening(script):
        synergy_job.report(loss=1, lr=0.1)
        synergy_job.report(loss=0.5)
        assert script.metrics == {"loss": 0.5, "lr": 0.1}
        synergy_job.report(loss=math.nan)
    assert script.metrics == {"lr": 0.1}


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"1st": 1.0}, ValueError, "'1st' is no name of a metric"),
        ({"a" * 33: 1.0}, ValueError, "is no name of a metric"),
        ({f"m{n}": 1.0 for n in range(9)}, ValueError, "9 metrics, at most 8 are kept"),
        ({"loss": "low"}, ValueError, "could not convert"),
        ({"loss": []}, TypeError, "float"),
    ],
)
def test_wrong_metrics(metrics: dict[str, float], error: type[Exception], message: str) -> None:
    script = Script(lambda _: None)
    with listening(script):
        with pytest.raises(error, match=message):
            synergy_job.report(**metrics)
        assert script.metrics is None


def test_a_loss_that_is_no_number_leaves_nothing_and_not_what_was_before() -> None:
    script = Script(lambda _: None)
    assert script.metrics is None
    with listening(script):
        synergy_job.report(loss=0.5)
        synergy_job.report(loss=math.nan)
    assert script.metrics == {}


def test_what_a_framework_logs_never_ends_training() -> None:
    script = Script(lambda _: None)
    with listening(script):
        report_what_fits({f"train_{n}": n for n in range(5)})
        report_what_fits({**{f"train_{n}": n + 1 for n in range(5)}, **{f"a_val_{n}": n for n in range(5)}})
        report_what_fits({})
    assert script.metrics == {**{f"train_{n}": n + 1.0 for n in range(5)}, **{f"a_val_{n}": float(n) for n in range(3)}}
    report_what_fits({"outside": 1.0})
