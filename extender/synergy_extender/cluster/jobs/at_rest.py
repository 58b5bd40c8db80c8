"""Jobs about which nothing is pending. Passes look at them only where something else has changed. Pure."""

from synergy_api.parts.allocation import Allocation
from synergy_api.resources.training_job import FINISHED, TrainingJobSpec, TrainingJobStatus


def is_at_rest(spec: TrainingJobSpec, status: TrainingJobStatus, *, deleting: bool) -> bool:
    """Whether the run protocol has nothing to say of the job, at whatever time: it is finished and holds nothing, or it
    trains on GPUs of its own. Nothing is told of it that the next decision may have to take back."""
    if status.queue is not None or status.late is not None:
        return False
    if status.estimates is not None or status.restriction is not None:
        return False
    if status.phase in FINISHED:
        return status.allocation is None or status.allocation.state == "Released"
    if deleting or spec.suspend or spec.slo is not None or status.size_limits is not None:
        return False
    return _trains(status) and _is_alone(status.allocation)


def _trains(status: TrainingJobStatus) -> bool:
    """Whether its newest run has not ended, and was admitted to all that it was given."""
    allocation, service = status.allocation, status.service
    if allocation is None or allocation.state != "Granted" or allocation.purpose != "Train":
        return False
    if not allocation.admitted or allocation.planned:
        return False
    return service is None or service.ended_run < allocation.run


def _is_alone(allocation: Allocation | None) -> bool:
    """Whether its GPUs are whole ones of NVIDIA's usual name, without claims (DRA)."""
    if allocation is None or allocation.shared_gpu is not None:
        return False
    return not any(
        share.devices is not None or share.resource is not None or share.device_ids for share in allocation.workers
    )
