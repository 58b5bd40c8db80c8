"""`python3 -m synergy_profiler --warmup-steps W --steps N --timeout S -- COMMAND ARGS...`

Measures how fast a training command is, here and now: exit code 0 and a JSON object in the termination message when it
was measured, exit code 1 and the reason there when it was not.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import TYPE_CHECKING

from synergy_profiler.harness import run
from synergy_profiler.options import Options
from synergy_profiler.result import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType


def _number(kind: Callable[[str], float], least: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = kind(text)
        if not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not a number of {least:g} or more")
        return value

    parse.__name__ = "number"
    return parse


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="synergy_profiler", description="Measure how fast a training command is.")
    parser.add_argument("--warmup-steps", type=_number(int, 0), default=Options.warmup_steps, metavar="W")
    parser.add_argument("--steps", type=_number(int, 2), default=Options.steps, metavar="N")
    parser.add_argument("--timeout", type=_number(float, 0), default=Options.timeout_s, metavar="SECONDS")
    parser.add_argument("--min-seconds", type=_number(float, 0), default=Options.min_seconds, metavar="SECONDS")
    parser.add_argument(
        "--max-relative-error", type=_number(float, 0), default=Options.max_relative_error, metavar="FRACTION"
    )
    parser.add_argument("--grace", type=_number(float, 0), default=Options.grace_s, metavar="SECONDS")
    parser.add_argument("--throughput-regex", default=Options.regex, metavar="REGEX")
    parser.add_argument("--counters", choices=["Auto", "Nsight", "Off"], default=Options.counters)
    parser.add_argument("--pair-seconds", type=_number(float, 0), default=Options.pair_seconds, metavar="SECONDS")
    parser.add_argument("--workers", type=_number(int, 1), default=Options.workers, metavar="N")
    log = os.environ.get("SYNERGY_TERMINATION_LOG", "/dev/termination-log")
    parser.add_argument("--termination-log", default=log, metavar="FILE")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --: the command and its arguments")
    return parser.parse_args(argv)


def _told_to_stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # the command is being stopped already
    sys.exit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write the result; SIGTERM stops the command and leaves no result."""
    given = _arguments(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGTERM, _told_to_stop)
    signal.signal(signal.SIGINT, _told_to_stop)
    if given.command:
        options = Options(
            given.warmup_steps,
            given.steps,
            given.timeout,
            given.min_seconds,
            given.max_relative_error,
            given.grace,
            given.throughput_regex,
            given.counters,
            given.pair_seconds,
            given.workers,
        )
        result = run(given.command, options)
    else:
        result = Failed("BadCommand", "no command is given: write it after --")
    text = result.to_json()
    try:
        with open(given.termination_log, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"synergy_profiler: cannot write the termination message: {error}\n")
    sys.stderr.write(f"synergy_profiler: {text}\n")
    return 1 if isinstance(result, Failed) else 0


if __name__ == "__main__":
    sys.exit(main())
