"""Steps read from what a command prints, alone and by the harness around real commands."""

import signal

import pytest

from synergy_profiler.measurement import Sample, measure
from synergy_profiler.printed import PrintedSteps


def steps_of(regex: str, *output: bytes) -> list[tuple[int, float | None]]:
    printed = PrintedSteps(regex)
    take = printed.stream()
    for data in output:
        take(data)
    found = []
    while (sample := printed.next(0)) is not None:
        found.append((sample.step, sample.speed))
    return found


@pytest.mark.parametrize(
    ("regex", "output", "steps"),
    [
        (r"^step", [b"step\nother\nstep\n"], [(1, None), (2, None)]),
        (
            r"step (?P<step>[\d,]+)",
            [b"step 998\nstep 1,0", b"00\nstep 1,002\n"],
            [(998, None), (1000, None), (1002, None)],
        ),
        (r"(?P<step>\d+)/\d+ \[(?P<speed>[\d.]+)it/s", [b"\r 7/90 [3.5it/s]\r 9/90 [4it/s]\r"], [(7, 3.5), (9, 4.0)]),
        (r"step (?P<step>\d+)", [b"step 5"], []),
        (r"(?P<step>\w+) done", [b"many done\n4 done\n"], [(4, None)]),
        (r"^\xff?step", [b"\xff\xfe\nstep\n"], [(1, None)]),
    ],
)
def test_each_matching_line_is_a_step(regex: str, output: list[bytes], steps: list[tuple[int, float | None]]) -> None:
    assert steps_of(regex, *output) == steps


def test_two_streams_do_not_tear_each_others_lines() -> None:
    printed = PrintedSteps(r"step (?P<step>\d+)")
    out, err = printed.stream(), printed.stream()
    out(b"step ")
    err(b"a warning\n")
    out(b"3\n")
    sample = printed.next(0)
    assert sample is not None
    assert sample.step == 3


def test_a_line_without_an_end_takes_no_memory() -> None:
    printed = PrintedSteps("x")
    take = printed.stream()
    for _ in range(100):
        take(b"y" * 65536)
    assert printed.next(0) is None
    closure = take.__closure__
    assert closure is not None
    assert all(len(cell.cell_contents) <= 4096 for cell in closure if isinstance(cell.cell_contents, bytes))


def test_a_speed_that_the_command_tells_is_the_rate() -> None:
    told = [Sample(step, 0.1 * step, speed) for step, speed in enumerate([10.0, 12.0, 11.0, 11.0, 11.0], start=1)]
    result = measure(told)
    assert result.steps_per_second == 11.0
    assert 0.02 < result.relative_error < 0.04


def test_an_alarm_of_somebody_else_is_left_as_it_was() -> None:
    before = signal.getsignal(signal.SIGALRM)
    assert steps_of("step", b"step\n") == [(1, None)]
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
