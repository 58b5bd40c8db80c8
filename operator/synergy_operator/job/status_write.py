"""When a new status is written, and with which events."""

from typing import Final

from synergy_api.names import ROLE_WORKER
from synergy_api.parts.service import ServiceStatus, WorkerStatus
from synergy_api.reasons import Reason
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_operator.actions import Action, ApplyStatus
from synergy_operator.conditions import RESOURCES
from synergy_operator.job.events import events
from synergy_operator.job.problem import problem_of
from synergy_operator.views.observed import Observed
from synergy_operator.views.worker_state import WorkerState, shown_state

_MOST_WORKERS: Final = 4096
_GATES_SECONDS: Final = 5.0


def operator_part(status: TrainingJobStatus) -> TrainingJobStatus:
    """The fields of the status that the operator owns."""
    others = ("allocation", "queue", "late", "restriction", "marks", "estimates", "preemptions", "progress", "summary")
    return status.model_copy(update=dict.fromkeys(others))


def status_actions(old: TrainingJobStatus, new: TrainingJobStatus) -> tuple[Action, ...]:
    """The status write with its events; nothing if the status is unchanged."""
    status = new.model_copy(update={"problem": problem_of(new)})
    return (ApplyStatus(status), *events(old, status)) if operator_part(old) != status else ()


def write_delay(old: TrainingJobStatus, new: TrainingJobStatus, observed: Observed, now: float) -> float | None:
    """How many seconds the write of a status can wait that differs only in gates removed a moment ago.

    Most workers run soon after, which causes a write anyway. None if something else changed, or nothing.
    """
    fell = max((pod.ungated_at for pod in observed.pods if pod.ungated_at is not None), default=None)
    left = 0.0 if fell is None else fell + _GATES_SECONDS - now
    if left <= 0 or operator_part(old).workers == new.workers:
        return None
    shown = new.model_copy(update={"problem": problem_of(new)})
    return left if _without_gates(operator_part(old)) == _without_gates(shown) else None


def _without_gates(status: TrainingJobStatus) -> TrainingJobStatus:
    workers = [
        worker.model_copy(update={"state": WorkerState.WAITING.value})
        if worker.state == WorkerState.GATED.value
        else worker
        for worker in status.workers
    ]
    conditions = [c for c in status.conditions if (c.type, c.reason) != (RESOURCES, Reason.AS_PLANNED)]
    return status.model_copy(update={"workers": workers, "conditions": conditions})


def shown_workers(observed: Observed, service: ServiceStatus, open_run: int | None) -> list[WorkerStatus]:
    """The workers of a run as the status shows them."""
    pods = observed.pods_of(open_run if open_run is not None else service.run)
    return [
        WorkerStatus(
            name=pod.name,
            rank=pod.rank,
            node=pod.node or pod.planned_node,
            gpus=pod.gpus,
            state=shown_state(pod),
            **pod.amounts.fields,
        )
        for pod in pods
        if pod.role == ROLE_WORKER and pod.rank >= 0 and pod.gpus > 0
    ][:_MOST_WORKERS]
