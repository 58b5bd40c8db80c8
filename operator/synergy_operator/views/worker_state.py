"""The state of one worker, derived from its pod alone."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from synergy_api.names import EXIT_YIELDED
from synergy_operator.views.pod import PodView


class WorkerState(StrEnum):
    """How far a worker has come.

    LOST: somebody else ended it, or its end is unknown. REFUSED: its node never let it start.
    """

    GATED = "Gated"
    WAITING = "Waiting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    YIELDED = "Yielded"
    FAILED = "Failed"
    LOST = "Lost"
    REFUSED = "Refused"

    @property
    def left(self) -> bool:
        """The worker ended by itself and without a failure."""
        return self in (WorkerState.SUCCEEDED, WorkerState.YIELDED)


_UNKNOWN_END: Final = "ContainerStatusUnknown"
_DONE: Final = ("finished", "measured")
"""Outcomes in the termination messages of the library and the harness that mean that all work is done."""
_FAILED: Final = "failed"
"""Of a worker with the library, with the name of the `function` that failed: its checkpoint was not written or read."""
_YIELDED: Final = "yielded"
"""The library's outcome once the checkpoints of all ranks are written."""


def worker_state(pod: PodView) -> WorkerState:
    """The state of a worker that the operator itself has not deleted."""
    code, taken = pod.main.exit_code, pod.deleting or bool(pod.disruption)
    message = termination_message(pod) if code is not None else {}
    reported = str(message.get("outcome", ""))
    if code == EXIT_YIELDED or reported == _YIELDED:
        return WorkerState.YIELDED
    if code == 0 and reported == _FAILED and message.get("function"):
        return WorkerState.FAILED
    if code == 0 and (not taken or reported in _DONE):
        return WorkerState.SUCCEEDED
    if taken or pod.main.reason == _UNKNOWN_END:
        return WorkerState.LOST
    if code is not None or pod.init_failure:
        return WorkerState.FAILED
    return _without_exit_code(pod)


def termination_message(pod: PodView) -> Mapping[str, Any]:
    """The termination message, whose outcome counts in addition to the exit code; empty if it is none of ours.

    The exit code alone is not reliable. Many scripts exit with 0 on SIGTERM, so for a deleted pod 0 proves nothing. A
    launcher such as torchrun has an exit code of its own, independent of that of its processes.

    The container may write anything. Lists and objects in the message are left out. Texts can be encoded: half of a
    surrogate pair, for example of a path that is not UTF-8, becomes its escape.
    """
    try:
        message = json.loads(pod.main.message or "null")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(message, dict):
        return {}
    return {name: _encodable(value) for name, value in message.items() if not isinstance(value, dict | list)}


def _encodable(value: object) -> object:
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def _without_exit_code(pod: PodView) -> WorkerState:
    started = pod.main.started_at is not None
    match pod.phase:
        case "Succeeded":
            return WorkerState.SUCCEEDED
        case "Failed":
            return WorkerState.LOST if started else WorkerState.REFUSED
        case _ if started:
            return WorkerState.RUNNING
        case _:
            return WorkerState.GATED if pod.gated else WorkerState.WAITING


def shown_state(pod: PodView) -> str:
    """The state as `status.workers` shows it."""
    state = worker_state(pod)
    if state.left:
        return WorkerState.SUCCEEDED.value
    if state is WorkerState.LOST and not pod.terminal:
        state = WorkerState.RUNNING if pod.main.running else WorkerState.WAITING
    return WorkerState.FAILED.value if state in (WorkerState.LOST, WorkerState.REFUSED) else state.value
