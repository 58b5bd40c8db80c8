"""What is known of a job's usage of a GPU."""

from synergy_api.quantity import byte_count
from synergy_api.sharing import GPUUsage
from synergy_core.colocation.usage import Usage
from synergy_extender.cluster.views import JobView


def usages_of(job: JobView) -> dict[str, Usage]:
    """By GPU type, as its user tells it. A job that names no model is a model of its own: it can be learnt about."""
    return {
        told.gpu_type: Usage(
            compute=told.compute,
            bandwidth=told.bandwidth,
            memory_bytes=byte_count(told.memory),
            model=told.model or str(job.key),
            configuration=told.configuration,
        )
        for told in job.spec.sharing.usage
    }


def as_told(usage: Usage, gpu_type: str) -> GPUUsage:
    """The same in a custom resource's words."""
    return GPUUsage(
        gpu_type=gpu_type,
        compute=usage.compute,
        bandwidth=usage.bandwidth,
        memory=str(max(1, usage.memory_bytes)),
        model=usage.model,
        configuration=usage.configuration,
    )


def from_told(told: GPUUsage) -> Usage:
    """The planner's words of what `as_told` wrote."""
    return Usage(
        compute=told.compute,
        bandwidth=told.bandwidth,
        memory_bytes=byte_count(told.memory),
        model=told.model,
        configuration=told.configuration,
    )
