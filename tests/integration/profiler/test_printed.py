"""Steps read from what a command prints, by the harness around real commands."""

from support.job.harness import Harness, at_most

QUICK = ("--warmup-steps", "2", "--steps", "20", "--min-seconds", "0", "--grace", "2")


PRINTING = """
    import time
    moment = time.monotonic()
    for step in range(1, 1000):
        moment += 0.02
        time.sleep(max(0, moment - time.monotonic()))
        print(f"epoch 1 step {step}/1000 loss 0.{step}")
"""
"""Fifty steps a second, without the library."""


def test_printed_steps_are_measured(harness: Harness) -> None:
    run = harness.run(PRINTING, *QUICK, "--throughput-regex=step (?P<step>\\d+)/")
    assert run.code == 0
    assert run.result["steps_per_second"] == at_most(50)
    assert run.result["steps"] == 20


def test_a_rate_takes_several_lines_however_many_steps_each_stands_for(harness: Harness) -> None:
    script = """
        import time
        for step in range(1000, 100_000, 1000):
            time.sleep(0.05)
            print("step", step)
    """
    run = harness.run(script, *QUICK, "--throughput-regex=step (?P<step>\\d+)")
    assert run.result["steps"] == 4000


def test_output_that_never_matches_is_told_from_a_missing_library(harness: Harness) -> None:
    run = harness.run("print('hello')", *QUICK, "--throughput-regex=step")
    assert run.result["reason"] == "NoSteps"
    assert "spec.throughput.regex must match what the training script prints" in run.result["message"]


def test_numbers_that_are_none_are_told(harness: Harness) -> None:
    run = harness.run("print('step many')", *QUICK, "--throughput-regex=step (?P<step>\\w+)")
    assert "1 step messages made no sense" in run.result["message"]


def test_an_expression_that_this_python_does_not_know_is_named(harness: Harness) -> None:
    run = harness.run(PRINTING, *QUICK, "--throughput-regex=(")
    assert run.result["reason"] == "BadCommand"
    assert "spec.throughput.regex" in run.result["message"]


def test_an_expression_that_never_ends_is_named_with_the_line(harness: Harness) -> None:
    run = harness.run("print('a' * 60); import time; time.sleep(600)", *QUICK, "--throughput-regex=(a+)+b")
    assert run.result["reason"] == "BadCommand"
    assert "spec.throughput.regex takes more than 1 s for the line 'aaaa" in run.result["message"]
