"""Why a job waits for its turn, in the words of its place in the queue.

The condition `Running` changes with the reason, not with the position or the numbers in the words: each change is a
write and an event.
"""

from typing import Final

from synergy_api.base import Condition
from synergy_api.parts.waiting import QueueStatus
from synergy_api.reasons import ENTRIES, Finding, Reason, ReasonPlace, say
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_operator.conditions import RUNNING, ConditionUpdate, find, no

_TOLD: Final = {
    reason: entry.event
    for reason, entry in ENTRIES.items()
    if {ReasonPlace.QUEUE, ReasonPlace.RUNNING} <= set(entry.places)
}
UNSATISFIABLE: Final = frozenset(reason for reason, event in _TOLD.items() if event == "Warning")
"""Reasons of the queue that no waiting resolves."""
WAITING: Final = frozenset(_TOLD) - UNSATISFIABLE
"""Reasons of the queue that pass."""


def never_runs(queue: QueueStatus | None) -> Finding | None:
    """Why the job can never run at present; None if waiting can help."""
    return _finding(queue, UNSATISFIABLE)


def waits_for_turn(queue: QueueStatus | None) -> Finding | None:
    """Why it is not the job's turn; None before a plan has said so."""
    return _finding(queue, WAITING)


def wants_to_tell(status: TrainingJobStatus) -> bool:
    """Whether the queue has another reason for waiting than the condition."""
    running, found = find(status.conditions, RUNNING), waits_for_turn(status.queue)
    return found is not None and (running is None or running.reason != found.reason)


def told(update: ConditionUpdate, before: Condition | None, told_in: float) -> tuple[ConditionUpdate, float | None]:
    """The condition `Running` that may be written now, and the seconds until the one wanted may.

    A reason that the condition has already keeps its words. Another one waits `told_in` seconds.
    """
    wanted = update.finding.reason
    if wanted not in WAITING:
        return update, None
    waited = before is not None and before.status == "False" and before.reason in WAITING
    kept = Finding(Reason(before.reason), before.message) if before is not None and waited else None
    if kept is not None and kept.reason is wanted:
        return no(kept), None
    if told_in <= 0:
        return update, None
    return no(kept or say(Reason.WAITING_FOR_PLAN)), told_in


def _finding(queue: QueueStatus | None, among: frozenset[Reason]) -> Finding | None:
    if queue is None or queue.reason not in among:
        return None
    return Finding(Reason(queue.reason), queue.message)
