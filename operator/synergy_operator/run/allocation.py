"""The allocation of the open run."""

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.service import ServiceStatus
from synergy_api.resources.training_job import TrainingJobStatus


def open_allocation(status: TrainingJobStatus) -> Allocation | None:
    """The allocation of the run that is not closed yet; None if there is none.

    A run that began and has lost its allocation comes first: the operator must close its accounting.
    """
    service = status.service or ServiceStatus()
    allocation = status.allocation
    if service.run > service.ended_run and (allocation is None or allocation.run != service.run):
        return lost_place(status, service)
    return allocation if allocation is not None and allocation.run > service.ended_run else None


def lost_place(status: TrainingJobStatus, service: ServiceStatus) -> Allocation:
    """A substitute for the allocation of the newest run, which a user deleted.

    It is Released. Its shares are those of the workers in the status, so a missing worker still counts as missing.
    """
    shares: dict[str, Amounts] = {}
    for worker in status.workers:
        shares[worker.node] = shares.get(worker.node, NOTHING).plus(Amounts.of(worker))
    return Allocation(
        run=service.run,
        purpose="Profile" if status.phase == "Profiling" else "Train",
        state="Released",
        gpu_type=service.running_gpu_type or "",
        workers=[NodeShare(node=node, gpus=share.gpus, **share.fields) for node, share in shares.items()],
    )
