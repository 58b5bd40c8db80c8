"""The size of a profile pod on one GPU type, and how its measurements become the whole job's matrix.

A profile pod is one worker of the job: it has as many GPUs as one of its pods would have on the largest node of the
type. A job with more GPUs runs several such workers side by side, each at the measured speed. This assumes data
parallelism with a fixed batch per worker, without communication. Steps per second stay as measured; CPU and memory grow
with the GPUs.
"""

from dataclasses import dataclass
from typing import Final

from synergy_api.cluster.pods import init_requests, sidecar_requests
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.parts.allocation import NodeShare
from synergy_api.quantity import byte_count, cpu_millis
from synergy_api.resources.scheduling_policy import Profiling
from synergy_api.resources.training_job import TrainingJobSpec

_DEFAULT_STEPS: Final = 24
_MOST_POINTS: Final = 63
"""A matrix has at most 64 rows. The CPU limit is one of them."""


@dataclass(frozen=True, slots=True)
class ProfileSize:
    """The size of one profile pod.

    It has `gpus` of the job's `job_gpus`, CPU points from `floor_millis` to `ceiling_millis`, and the full memory at
    each point. `storage_bytes_per_s` is the pod's part of its node's bandwidth, None if that is unknown. `node_part` is
    that part, by GPUs.
    """

    gpu_type: str
    gpus: int
    job_gpus: int
    floor_millis: int
    step_millis: int
    ceiling_millis: int
    memory_bytes: int
    storage_bytes_per_s: float | None
    node_part: float = 1.0
    client_thread_percent: int = 100
    """The percentage of its GPUs' threads that MPS leaves to the pod."""

    def of_job(self, amount: int) -> int:
        """A pod's amount of CPU or memory as the whole job's, rounded up."""
        return -(-amount * self.job_gpus // self.gpus)


def profile_size(
    spec: TrainingJobSpec, nodes: tuple[NodeCapacity, ...], profiling: Profiling, granted: NodeShare | None = None
) -> ProfileSize:
    """The profile pod on a GPU type with these `nodes` (at least one), within the `granted` share if there is one.

    - The highest CPU point is `maxCpuMultiple` times the GPU-proportional share, limited by `spec.resources.max.cpu`
      and by the node.
    - Full memory is `spec.resources.max.memory`, otherwise the proportional share, limited by the node. If the memory
      model applies (data set, batch size and storage bandwidth known), it includes the whole data set.
    """
    node = _reference(nodes, granted)
    gpus = granted.gpus if granted else min(spec.gpus, spec.gpus_per_worker or spec.gpus, node.gpus)
    share = node.storage_bytes_per_s * gpus / node.gpus if node.storage_bytes_per_s is not None else None
    highest, memory = spec.resources.max.cpu, spec.resources.max.memory
    cpu_bounds = [node.amounts.cpu_millis, profiling.max_cpu_multiple * node.amounts.cpu_millis * gpus // node.gpus]
    memory_bounds = [node.amounts.memory_bytes]
    if highest is not None:
        cpu_bounds.append(cpu_millis(highest) * gpus // spec.gpus)
    if memory is not None:
        memory_bounds.append(byte_count(memory) * gpus // spec.gpus)
    else:
        data = spec.dataset.bytes if spec.dataset and spec.batch_size and share else 0
        memory_bounds.append(node.amounts.memory_bytes * gpus // node.gpus + data)
    if granted is not None:
        cpu_bounds.append(granted.cpu_millis)
        memory_bounds.append(granted.memory_bytes)
    ceiling = max(1, min(cpu_bounds))
    step = (
        cpu_millis(spec.profile.cpu_step)
        if spec.profile.cpu_step
        else max(1, node.amounts.cpu_millis // _DEFAULT_STEPS)
    )
    return ProfileSize(
        gpu_type=node.gpu_type,
        gpus=gpus,
        job_gpus=spec.gpus,
        floor_millis=min(ceiling, _floor(spec, gpus, node.amounts.cpu_millis * gpus // node.gpus)),
        step_millis=max(step, -(-ceiling // _MOST_POINTS)),
        ceiling_millis=ceiling,
        memory_bytes=max(1, min(memory_bounds)),
        storage_bytes_per_s=share,
        node_part=gpus / node.gpus,
        client_thread_percent=node.client_thread_percent,
    )


def _reference(nodes: tuple[NodeCapacity, ...], granted: NodeShare | None) -> NodeCapacity:
    """The granted node, otherwise the node with the most GPUs, then CPU, then the first name."""
    if granted is not None:
        for node in nodes:
            if node.name == granted.node:
                return node
    return min(nodes, key=lambda node: (-node.gpus, -node.amounts.cpu_millis, node.name))


def _floor(spec: TrainingJobSpec, gpus: int, proportional: int) -> int:
    """The lowest CPU point.

    - It is not below the minimum that the plan has to give.
    - It leaves training something beside the sidecars, and fits each init container.
    - It is at least a tenth of the proportional share: runs with less CPU take long, and there is little left to save.
    """
    least = spec.resources.min.cpu
    wanted = cpu_millis(least) * gpus // spec.gpus if least is not None else 0
    pod = spec.template["spec"]
    beside = sidecar_requests(pod).cpu_millis
    first = max((needs.cpu_millis for needs in init_requests(pod).values()), default=0)
    return max(wanted, proportional // 10, beside + 1 if beside else 0, first)
