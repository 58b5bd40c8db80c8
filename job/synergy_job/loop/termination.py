"""The termination message: what the operator reads of a worker that has ended."""

from __future__ import annotations

import json
import logging

_LONGEST_ERROR = 500

log = logging.getLogger("synergy_job")


def write_termination_message(
    path: str,
    outcome: str,
    step: int,
    checkpoint_step: int,
    *,
    save_seconds: float | None = None,
    trained_seconds: float | None = None,
    ended_early: str | None = None,
) -> None:
    """Write `{"outcome", "step", "checkpoint_step"}`, and of the others those that are known: how long the newest save
    took, how long the job has trained in all its runs, and why it ended early. A place that cannot be written is warned
    of, not an error."""
    more = {"save_seconds": save_seconds, "trained_seconds": trained_seconds, "ended_early": ended_early}
    known = {name: value for name, value in more.items() if value is not None}
    _write(path, {"outcome": outcome, "step": step, "checkpoint_step": checkpoint_step, **known})


def write_checkpoint_failure(path: str, function: str, error: BaseException, kept: tuple[int, float] | None) -> None:
    """Write that the user's `function` (save or load) raised `error`. `kept` are the steps and the seconds of training
    that the newest checkpoint has, if they are known: the next run goes on from there."""
    told = valid_text(f"{type(error).__name__}: {error}")[:_LONGEST_ERROR]
    message: dict[str, object] = {"outcome": "failed", "function": function, "error": told}
    if kept is not None:
        step, seconds = kept
        message |= {"step": step, "checkpoint_step": step, "trained_seconds": round(seconds, 3)}
    _write(path, message)


def valid_text(text: str) -> str:
    """The text with each half of a surrogate pair escaped: JSON cannot hold it. Errors about paths that are not UTF-8
    have such halves."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _write(path: str, message: dict[str, object]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(message, file)
    except OSError as error:
        log.warning("cannot write the termination message to %s: %s", path, error)
