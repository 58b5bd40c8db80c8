"""When waiting jobs will start: `status.queue.estimatedStart`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from synergy_api.parts.waiting import QueueStatus
from synergy_api.timestamps import format_time, parse_time
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.changes import Draft

MOVED: Final = 0.25
"""An estimate is written for its own sake if it moved by more than this part of the time that remains."""
_SHORTEST_S: Final = 240.0
"""A shorter remaining time counts as this long: the last minute of waiting is not worth a write."""
Told = tuple[str | None, str | None]
"""`estimatedStart` and `estimatedStartBy`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a forecast sees a job start, Unix time: with even chances before `start`, most likely before `start_by`,
    None where that is beyond the forecast's horizon."""

    start: float
    start_by: float | None


def tell_starts(drafts: Mapping[Key, Draft], now: float, estimates: Mapping[Key, Estimate] | None) -> None:
    """Add to waiting jobs when they will start, once all else of them is decided.

    A new estimate comes with a write that happens anyway, or on its own where it moved much. Before the first forecast
    (None) the present times stay; without an estimate the job has no time.
    """
    for key, draft in drafts.items():
        if draft.queue is None:
            continue
        stood = _told(draft.job.status.queue)
        draft.queue = _with(draft.queue, stood)
        if estimates is None:
            continue
        fresh = _texts(estimates.get(key))
        if fresh != stood and (draft.change() is not None or moved(stood[0], fresh[0], now)):
            draft.queue = _with(draft.queue, fresh)


def moved(before: str | None, after: str | None, now: float) -> bool:
    """Whether the new estimate of a start is another one to somebody who waits."""
    if before is None or after is None:
        return before is not after
    then, later = parse_time(before), parse_time(after)
    return abs(later - then) > MOVED * max(_SHORTEST_S, then - now, later - now)


def _told(queue: QueueStatus | None) -> Told:
    return (None, None) if queue is None else (queue.estimated_start, queue.estimated_start_by)


def _texts(estimate: Estimate | None) -> Told:
    if estimate is None:
        return None, None
    start_by = estimate.start_by
    return format_time(float(round(estimate.start))), None if start_by is None else format_time(float(round(start_by)))


def _with(queue: QueueStatus, told: Told) -> QueueStatus:
    if _told(queue) == told:
        return queue
    return queue.model_copy(update={"estimated_start": told[0], "estimated_start_by": told[1]})
