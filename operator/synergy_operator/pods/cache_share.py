"""The share of a worker's memory that its data cache may use: what the plan gives beyond the job's own working set."""

from synergy_api.quantity import byte_count
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.pods.template import PodShare, first_container_amounts
from synergy_operator.views.job import JobView


def cache_environment(job: JobView, spec: TrainingJobSpec, share: PodShare) -> dict[str, str]:
    """Environment variables with the size of the library's cache. Empty if the job's own need is unknown."""
    own = working_set(job, spec, share.gpus)
    if own is None:
        return {}
    memory = first_container_amounts(spec.template, share).memory_bytes
    return {
        "SYNERGY_CACHE_BYTES": str(max(0, memory - own)),
        "SYNERGY_MEMORY_BYTES": str(share.amounts.memory_bytes),
        "SYNERGY_CONTAINER_BYTES": str(memory),
    }


def working_set(job: JobView, spec: TrainingJobSpec, gpus: int) -> int | None:
    """Memory in bytes that a pod's processes need without the cache, in proportion to its GPUs.

    Taken from the measured profile, whose memory axis begins there, or from `spec.resources.min`. None if neither is
    known.
    """
    profile, allocation = job.status.profile, job.status.allocation
    if profile is not None and allocation is not None and spec.profile.mode not in ("Provided", "Skip"):
        for matrix in profile.matrices:
            if matrix.gpu_type == allocation.gpu_type and len(matrix.memory_bytes) > 1:
                return -(-matrix.memory_bytes[0] * gpus // spec.gpus)
    least = spec.resources.min.memory
    return None if least is None else -(-byte_count(least) * gpus // spec.gpus)
