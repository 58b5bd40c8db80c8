"""That what is said stands in the closed list, in a place where the list says it may."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from synergy_api.reasons import ENTRIES, EventKind, Reason, ReasonPlace
from synergy_api.resources.training_job import TrainingJobStatus

_CONDITIONS: Final = {
    "Valid": ReasonPlace.VALID,
    "Profiled": ReasonPlace.PROFILED,
    "SpeedsMeasured": ReasonPlace.SPEEDS,
    "Running": ReasonPlace.RUNNING,
    "ResourcesAsPlanned": ReasonPlace.RESOURCES,
    "OnTime": ReasonPlace.ON_TIME,
    "Finished": ReasonPlace.FINISHED,
}
_TOLD_BY: Final = ("Condition", "Finding", "PostEvent", "Problem", "QueueStatus", "post_event", "say", "Entry")


def check_status(status: TrainingJobStatus) -> None:
    """Every reason in a TrainingJob's status is in a place where the list has it."""
    for condition in status.conditions:
        assert _CONDITIONS[condition.type] in ENTRIES[Reason(condition.reason)].places, condition
    last = status.service.last if status.service else None
    word = last.reason.partition(":")[0] if last is not None else ""
    if word in Reason.__members__.values():  # another version's words are passed on
        assert ReasonPlace.LAST_RUN in ENTRIES[Reason(word)].places, last
    if status.problem is not None:
        assert ENTRIES[Reason(status.problem.reason)].event == "Warning", status.problem


def check_event(kind: EventKind, reason: str) -> None:
    """The event is of the kind that the list says."""
    assert ENTRIES[Reason(reason)].event == kind, reason


def named_reasons(files: Iterable[Path]) -> set[str]:
    """Names of the members of `Reason` that the code of these files refers to."""
    return {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }


def literal_reasons(file: Path) -> Iterator[str]:
    """Where the code says a reason in words of its own instead of one of the list."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        reasons = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
        if name in ("Finding", "say"):
            reasons += node.args[:1]
        if name in _TOLD_BY and any(isinstance(reason, ast.Constant | ast.JoinedStr) for reason in reasons):
            yield f"{file}:{node.lineno}"
