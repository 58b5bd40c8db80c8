"""What the training script tells the loop that it runs in: `finish`, `pause` and `report`."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import SupportsFloat, TypeVar

from synergy_job.loop.pauses import Pauses
from synergy_job.loop.termination import LONGEST_REASON, valid_text

log = logging.getLogger("synergy_job")

T = TypeVar("T")

MOST_METRICS = 8
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
BY_THE_SCRIPT = "the script called finish()"


class Script:
    """One loop's ear for its script. `on_finish` is told the reason when training should end."""

    def __init__(self, on_finish: Callable[[str], None], pauses: Pauses | None = None) -> None:
        self.on_finish = on_finish
        self.pauses = pauses or Pauses()
        self.metrics: dict[str, float] | None = None
        """None until something is reported; empty once no reported value is a finite number."""
        self.abandoned = False
        """True if the step that was begun last will not be made."""


_current: list[Script] = []


@contextmanager
def listening(script: Script) -> Iterator[None]:
    """Within the block, what the script says goes to `script`."""
    _current.append(script)
    try:
        yield
    finally:
        _current.remove(script)


def until_finished(batches: Iterable[T]) -> Iterator[T]:
    """The batches outside a cluster: they end early if the script calls `finish`."""
    reasons: list[str] = []
    with listening(Script(reasons.append)):
        for batch in batches:
            yield batch
            if reasons:
                return


def finish(reason: str = BY_THE_SCRIPT) -> None:
    """End training after the step that runs, as early stopping does; the job succeeds.

    Call it in the body of the loop over `iterate`. One process is enough: all processes of the job end after the same
    step, at most two steps later. A checkpoint is saved, the loop ends, and the job's status says `reason`. In a
    profile run it does nothing.

    Raises `RuntimeError` outside the loop.
    """
    if not _current:
        raise RuntimeError("finish() was called outside the loop over synergy_job.iterate(): it ends that loop")
    _current[-1].on_finish(valid_text(" ".join(str(reason).split()))[:LONGEST_REASON] or BY_THE_SCRIPT)


def abandon(reason: str) -> None:
    """The step that was begun last is not made and does not count: training has ended before it, for `reason`. For
    frameworks that own the loop."""
    if _current:
        _current[-1].abandoned = True
        finish(reason)


@contextmanager
def pause(name: str = "pause") -> Iterator[None]:
    """Time in which the script does not train, such as an evaluation: `with synergy_job.pause("evaluation"): ...`.

    It does not count in the measured speed. Forecasts add it to the time that the remaining steps take. Outside the
    loop over `iterate` it does nothing. `name` is for the reader.
    """
    if not _current:
        yield
        return
    with _current[-1].pauses.pause():
        yield


def report(**metrics: SupportsFloat) -> None:
    """Tell what the job's status shows beside its steps: `synergy_job.report(loss=loss, lr=1e-3)`.

    At most 8 metrics, whose names have letters, digits, `_`, `.` and `-`, at most 32 of them. The newest values are
    sent with the next report, every few seconds; rank 0's count. A value that is no finite number is left out. Outside
    the loop over `iterate` it does nothing.

    Raises `ValueError` for a wrong name or too many metrics, `TypeError` for what is no number.
    """
    for name in metrics:
        if not _NAME.fullmatch(name):
            raise ValueError(f"report: {name[:64]!r} is no name of a metric: use up to 32 letters, digits, _ . and -")
    values = {name: float(value) for name, value in metrics.items()}
    if not values:
        return
    known = dict(_current[-1].metrics or {}) if _current else {}
    for name, value in values.items():
        if math.isfinite(value):
            known[name] = value
        elif known.pop(name, None) is not None:
            log.warning("report: %s is %s; it is left out until it is a finite number", name, value)
    if len(known) > MOST_METRICS:
        raise ValueError(f"report: {len(known)} metrics, at most {MOST_METRICS} are kept: {', '.join(sorted(known))}")
    if _current:
        _current[-1].metrics = known


def report_what_fits(metrics: Mapping[str, SupportsFloat]) -> None:
    """`report` for frameworks, whose values nobody chose for it: of new names only as many as there is room for, in
    order of name."""
    known = set(_current[-1].metrics or {}) if _current else set()
    room = sorted(name for name in metrics if name not in known)[: MOST_METRICS - len(known)]
    report(**{name: metrics[name] for name in metrics if name in known or name in room})
