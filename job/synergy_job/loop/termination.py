"""The termination message: what the operator reads of a worker that has ended."""

from __future__ import annotations

import json
import logging

LONGEST_MESSAGE = 2048
"""Bytes. The kubelet keeps the last 4096 of a container, and 12 KiB of all containers of a pod: so many of each of six.
Of a message that is cut nothing can be read."""
LONGEST_REASON = 200
"""Characters of a text that says why."""
_LONGEST_ERROR = 500
_CUT = " ... "

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
    unsaved: str | None = None,
) -> None:
    """Write `{"outcome", "step", "checkpoint_step"}`, and of the others those that are known: how long the newest save
    took, how long the job has trained in all its runs, why it ended early, and why its last steps are not saved. A
    place that cannot be written is warned of, not an error."""
    more = {
        "save_seconds": save_seconds,
        "trained_seconds": trained_seconds,
        "ended_early": ended_early,
        "unsaved": None if unsaved is None else _ends(valid_text(unsaved), LONGEST_REASON),
    }
    known = {name: value for name, value in more.items() if value is not None}
    _write(path, {"outcome": outcome, "step": step, "checkpoint_step": checkpoint_step, **known})


def write_checkpoint_failure(path: str, function: str, error: BaseException, kept: tuple[int, float] | None) -> None:
    """Write that the user's `function` (save or load) raised `error`. `kept` are the steps and the seconds of training
    that the newest checkpoint has, if they are known: the next run goes on from there."""
    told, room = valid_text(f"{type(error).__name__}: {error}"), _LONGEST_ERROR
    message: dict[str, object] = {"outcome": "failed", "function": function, "error": _ends(told, room)}
    if kept is not None:
        step, seconds = kept
        message.update({"step": step, "checkpoint_step": step, "trained_seconds": round(seconds, 3)})
    while len(_encoded(message)) > LONGEST_MESSAGE:
        room //= 2
        message["error"] = _ends(told, room)
    _write(path, message)


def _ends(text: str, most: int) -> str:
    """The text; of a longer one its beginning, with the name of the exception, and its end: often the last line tells
    what went wrong."""
    if len(text) <= most:
        return text
    end = (most - len(_CUT)) // 2
    return text[: most - len(_CUT) - end] + _CUT + text[len(text) - end :]


def valid_text(text: str) -> str:
    """The text with each half of a surrogate pair escaped: JSON cannot hold it. Errors about paths that are not UTF-8
    have such halves."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encoded(message: dict[str, object]) -> bytes:
    """In UTF-8, where a letter takes up to 4 bytes, not 12 as in ASCII. Half of a surrogate pair is escaped."""
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _write(path: str, message: dict[str, object]) -> None:
    try:
        with open(path, "wb") as file:
            file.write(_encoded(message))
    except OSError as error:
        log.warning("cannot write the termination message to %s: %s", path, error)
