"""How much of a worker's memory its data cache may take: what the plan gives beyond the job's own working set."""

from synergy_api.quantity import byte_count
from synergy_api.training_job import TrainingJobSpec
from synergy_operator.pods.template import PodShare, first_container_amounts
from synergy_operator.views.job import JobView


def cache_environment(job: JobView, spec: TrainingJobSpec, place: PodShare) -> dict[str, str]:
    """The variables that tell the library; none where nobody knows what the job itself needs."""
    own = working_set(job, spec, place.gpus)
    if own is None:
        return {}
    memory = first_container_amounts(spec.template, place).memory_bytes
    return {
        "SYNERGY_CACHE_BYTES": str(max(0, memory - own)),
        "SYNERGY_MEMORY_BYTES": str(place.memory_bytes),
        "SYNERGY_CONTAINER_BYTES": str(memory),
    }


def working_set(job: JobView, spec: TrainingJobSpec, gpus: int) -> int | None:
    """Bytes that a pod's processes need beside the cache, by its part of the job's GPUs: as measured, which is where a
    measured memory axis begins, else what the user says that the job needs at the least."""
    profile, allocation = job.status.profile, job.status.allocation
    if profile is not None and allocation is not None and spec.profile.mode not in ("Provided", "Skip"):
        for matrix in profile.matrices:
            if matrix.gpu_type == allocation.gpu_type and len(matrix.memory_bytes) > 1:
                return -(-matrix.memory_bytes[0] * gpus // spec.gpus)
    least = spec.resources.min.memory
    return None if least is None else -(-byte_count(least) * gpus // spec.gpus)
