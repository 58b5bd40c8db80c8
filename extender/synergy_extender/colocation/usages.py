"""What is known of a job's usage of a GPU."""

from collections.abc import Sequence

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.parts.sharing import GPUUsage
from synergy_api.quantity import byte_count
from synergy_core.model.usage import Usage
from synergy_extender.cluster.views import JobView


def usages_of(job: JobView) -> dict[str, Usage]:
    """By GPU type: as its profile runs measured it, else as its user states it; of GPU memory the larger. A job that
    names no model is a model of its own: it can be learnt about."""
    measured = {found.gpu_type: found for found in job.status.profile.usage} if job.status.profile is not None else {}
    told = {found.gpu_type: found for found in job.spec.sharing.usage}
    usages = {}
    for gpu_type in sorted({*measured, *told}):
        said, seen = told.get(gpu_type), measured.get(gpu_type)
        memory = max(byte_count(said.memory) if said else 0, seen.memory_bytes if seen else 0)
        load = seen or said
        if load is not None:
            usages[gpu_type] = Usage(
                compute=load.compute,
                bandwidth=load.bandwidth,
                memory_bytes=memory,
                model=(said.model if said else "") or str(job.key),
                configuration=said.configuration if said else "",
                counters=load.source != "Utilization",
                utilization=load.utilization,
                memory_utilization=load.memory_utilization,
            )
    return usages


def too_small_clients(job: JobView, shared: Sequence[NodeCapacity]) -> frozenset[str]:
    """Of the nodes that share their GPUs those where the job would run out of GPU memory: the device plugin leaves each
    client of MPS its part of a GPU's, a lone one too."""
    if not shared:
        return frozenset()
    needs = {gpu_type: usage.memory_bytes for gpu_type, usage in usages_of(job).items()}
    return frozenset(
        one.name
        for one in shared
        if one.gpu_memory_bytes and needs.get(one.gpu_type, 0) > one.gpu_memory_bytes // one.replicas
    )


def as_told(usage: Usage, gpu_type: str) -> GPUUsage:
    """The same in a custom resource's words."""
    return GPUUsage(
        gpu_type=gpu_type,
        compute=usage.compute,
        bandwidth=usage.bandwidth,
        memory=str(max(1, usage.memory_bytes)),
        model=usage.model,
        configuration=usage.configuration,
        source="Counters" if usage.counters else "Utilization",
        utilization=usage.utilization,
        memory_utilization=usage.memory_utilization,
    )


def from_told(told: GPUUsage) -> Usage:
    """The planner's words of what `as_told` wrote."""
    return Usage(
        compute=told.compute,
        bandwidth=told.bandwidth,
        memory_bytes=byte_count(told.memory),
        model=told.model,
        configuration=told.configuration,
        counters=told.source == "Counters",
        utilization=told.utilization,
        memory_utilization=told.memory_utilization,
    )
