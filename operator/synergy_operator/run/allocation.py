"""The allocation of the run that is open: what the extender granted, or what the operator last saw of it."""

from synergy_api.allocation import Allocation, NodeShare
from synergy_api.training_job import ServiceStatus, TrainingJobStatus


def open_allocation(status: TrainingJobStatus) -> Allocation | None:
    """The allocation whose run has not been closed. A run that began and has no allocation any more comes before all
    others: its books are to be closed first."""
    service = status.service or ServiceStatus()
    allocation = status.allocation
    if service.run > service.ended_run and (allocation is None or allocation.run != service.run):
        return lost_place(status, service)
    return allocation if allocation is not None and allocation.run > service.ended_run else None


def lost_place(status: TrainingJobStatus, service: ServiceStatus) -> Allocation:
    """An allocation of the newest run that holds nothing any more. Its shares are those of the workers as the operator
    last saw them, so that a worker that is missing is still missed."""
    shares: dict[str, NodeShare] = {}
    for worker in status.workers:
        held = shares.get(worker.node)
        shares[worker.node] = NodeShare(
            node=worker.node,
            gpus=worker.gpus + (held.gpus if held is not None else 0),
            cpu_millis=worker.cpu_millis + (held.cpu_millis if held is not None else 0),
            memory_bytes=worker.memory_bytes + (held.memory_bytes if held is not None else 0),
        )
    return Allocation(
        run=service.run,
        purpose="Profile" if status.phase == "Profiling" else "Train",
        state="Released",
        gpu_type=service.running_gpu_type or "",
        workers=list(shares.values()),
    )
