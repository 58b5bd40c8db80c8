"""Steps read from what a job prints (`spec.throughput`): what is put before its command."""

import re
from typing import Final

from synergy_api.training_job import TrainingJobSpec

GROUPS: Final = ("step", "speed")
"""Groups of the regular expression that mean something, as in synergy_profiler.printed."""
MOST_WIDE_RANGES: Final = 8
_WIDE_RANGE_END: Final = re.compile(r"-(?:[^\x00-\x7f]|\\[uUN])")
"""Where a range of characters ends beyond ASCII. Python's compiler goes through each character of a range, a million in
`[\\0-\\U0010ffff]`: two hundred of those took 2.4 s, in which no other job's turn comes. Of 12,000 other expressions of
1,024 characters none took more than 0.05 s."""


def regex_option(spec: TrainingJobSpec) -> list[str]:
    """The option that gives the harness the regular expression; nothing where the job has none. Kubernetes expands
    `$(NAME)` in commands, hence the doubled dollars."""
    return [] if spec.throughput is None else ["--throughput-regex=" + spec.throughput.regex.replace("$", "$$")]


def report_command(spec: TrainingJobSpec, rank: int) -> list[str]:
    """What trains in place of the bare command on rank 0, so that steps are reported; nothing on other ranks, and where
    the expression does not say how many steps the job has done over all its runs."""
    if spec.throughput is None or rank > 0 or "step" not in re.compile(spec.throughput.regex).groupindex:
        return []
    return ["python3", "-m", "synergy_profiler.follow", *regex_option(spec), "--"]


def regex_error(spec: TrainingJobSpec) -> str:
    """What is wrong with the expression; empty if nothing is."""
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
    return f"spec.throughput.regex: group {unknown[0]} means nothing, use {' or '.join(GROUPS)}" if unknown else ""
