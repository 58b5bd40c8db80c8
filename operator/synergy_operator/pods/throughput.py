"""`spec.throughput`: the command that reads steps from a job's output, and the check of its regular expression."""

import re
from typing import Final

from synergy_api.resources.training_job import TrainingJobSpec

GROUPS: Final = ("step", "speed")
"""The named groups of the regular expression that have a meaning, as in synergy_profiler.printed."""
MOST_WIDE_RANGES: Final = 8
_WIDE_RANGE_END: Final = re.compile(r"-(?:[^\x00-\x7f]|\\[uUN])")
"""Matches where a range of characters ends beyond ASCII.

Python's compiler visits each character of a range, a million in `[\\0-\\U0010ffff]`. Two hundred such ranges took
2.4 s, during which no other job is reconciled. Of 12,000 other expressions of 1,024 characters none took more than
0.05 s.
"""


def regex_option(spec: TrainingJobSpec) -> list[str]:
    """The option that gives the harness the regular expression; empty if the job has none.

    Kubernetes expands `$(NAME)` in commands, so dollar signs are doubled.
    """
    return [] if spec.throughput is None else ["--throughput-regex=" + spec.throughput.regex.replace("$", "$$")]


def report_command(spec: TrainingJobSpec, rank: int) -> list[str]:
    """The command that wraps the training command of rank 0 and reports its steps.

    Empty for other ranks, and if the expression has no group `step`.
    """
    if spec.throughput is None or rank > 0 or "step" not in re.compile(spec.throughput.regex).groupindex:
        return []
    return ["python3", "-m", "synergy_profiler.follow", *regex_option(spec), "--"]


def regex_error(spec: TrainingJobSpec) -> str:
    """What is wrong with the expression; empty if it is valid."""
    if spec.throughput is None:
        return ""
    wide = len(_WIDE_RANGE_END.findall(spec.throughput.regex))
    if wide > MOST_WIDE_RANGES:
        return (
            f"spec.throughput.regex: {wide} ranges of characters end beyond ASCII, {MOST_WIDE_RANGES} at most: "
            "use a class such as \\w or \\S"
        )
    try:
        named = re.compile(spec.throughput.regex).groupindex
    except RecursionError:
        return "spec.throughput.regex: its groups are nested too deeply"
    except (re.error, OverflowError) as error:
        return f"spec.throughput.regex: {error}"
    unknown = sorted(set(named) - set(GROUPS))
    return f"spec.throughput.regex: group {unknown[0]} has no meaning, use {' or '.join(GROUPS)}" if unknown else ""
