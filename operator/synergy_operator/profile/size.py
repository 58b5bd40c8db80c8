"""How large a profile pod is on one GPU type, and how what it measures becomes the whole job's matrix.

A profile pod is one worker of the job: as many GPUs as one pod of it would have on the largest node of the type. A job
with more GPUs than that runs several such workers side by side, each at the measured pace (data parallelism with a
fixed batch per worker, communication left out): steps per second stay as measured, CPU and memory grow with the GPUs.
"""

from dataclasses import dataclass
from typing import Final

from synergy_api.allocation import NodeShare
from synergy_api.pods import init_requests, sidecar_requests
from synergy_api.pools import NodeCapacity
from synergy_api.quantity import byte_count, cpu_millis
from synergy_api.scheduling_policy import Profiling
from synergy_api.training_job import TrainingJobSpec

_DEFAULT_STEPS: Final = 24
_MOST_POINTS: Final = 63
"""A matrix has at most 64 rows; the ceiling is one of them."""


@dataclass(frozen=True, slots=True)
class ProfileSize:
    """One profile pod: `gpus` of the job's `job_gpus`; CPU points from `floor_millis` to `ceiling_millis`; the full
    memory of every point. `storage_bytes_per_s` is the pod's part of its node's bandwidth, None where not known;
    `node_part` is that part, by GPUs."""

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
    """Of its GPUs' threads, what MPS leaves the pod."""

    def of_job(self, amount: int) -> int:
        """A pod's amount of CPU or memory as the whole job's, rounded up."""
        return -(-amount * self.job_gpus // self.gpus)


def profile_size(
    spec: TrainingJobSpec, nodes: tuple[NodeCapacity, ...], profiling: Profiling, granted: NodeShare | None = None
) -> ProfileSize:
    """The profile pod on a GPU type whose `nodes` these are (at least one), within what was `granted` if anything was.

    The highest CPU point is `maxCpuMultiple` times the GPU-proportional share, within `spec.resources.max.cpu` and the
    node. Full memory is `spec.resources.max.memory`, else the proportional share, with room for the whole data set
    where less memory can be reckoned with (data set, batch size and storage bandwidth known), within the node.
    """
    node = _reference(nodes, granted)
    gpus = granted.gpus if granted else min(spec.gpus, spec.gpus_per_worker or spec.gpus, node.gpus)
    share = node.storage_bytes_per_s * gpus / node.gpus if node.storage_bytes_per_s is not None else None
    highest, memory = spec.resources.max.cpu, spec.resources.max.memory
    cpu_bounds = [node.cpu_millis, profiling.max_cpu_multiple * node.cpu_millis * gpus // node.gpus]
    memory_bounds = [node.memory_bytes]
    if highest is not None:
        cpu_bounds.append(cpu_millis(highest) * gpus // spec.gpus)
    if memory is not None:
        memory_bounds.append(byte_count(memory) * gpus // spec.gpus)
    else:
        data = spec.dataset.bytes if spec.dataset and spec.batch_size and share else 0
        memory_bounds.append(node.memory_bytes * gpus // node.gpus + data)
    if granted is not None:
        cpu_bounds.append(granted.cpu_millis)
        memory_bounds.append(granted.memory_bytes)
    ceiling = max(1, min(cpu_bounds))
    step = cpu_millis(spec.profile.cpu_step) if spec.profile.cpu_step else max(1, node.cpu_millis // _DEFAULT_STEPS)
    return ProfileSize(
        gpu_type=node.gpu_type,
        gpus=gpus,
        job_gpus=spec.gpus,
        floor_millis=min(ceiling, _floor(spec, gpus, node.cpu_millis * gpus // node.gpus)),
        step_millis=max(step, -(-ceiling // _MOST_POINTS)),
        ceiling_millis=ceiling,
        memory_bytes=max(1, min(memory_bounds)),
        storage_bytes_per_s=share,
        node_part=gpus / node.gpus,
        client_thread_percent=node.client_thread_percent,
    )


def _reference(nodes: tuple[NodeCapacity, ...], granted: NodeShare | None) -> NodeCapacity:
    """The granted node, else the one with the most GPUs, then CPU, then the first name."""
    if granted is not None:
        for node in nodes:
            if node.name == granted.node:
                return node
    return min(nodes, key=lambda node: (-node.gpus, -node.cpu_millis, node.name))


def _floor(spec: TrainingJobSpec, gpus: int, proportional: int) -> int:
    """No point below what the plan must give anyway, nor where sidecars leave nothing for training or an init container
    has no room, nor below a
    tenth of the proportional share: the less CPU, the longer the run, and there is next to nothing left to save."""
    least = spec.resources.min.cpu
    wanted = cpu_millis(least) * gpus // spec.gpus if least is not None else 0
    pod = spec.template["spec"]
    beside = sidecar_requests(pod).cpu_millis
    first = max((needs.cpu_millis for needs in init_requests(pod).values()), default=0)
    return max(wanted, proportional // 10, beside + 1 if beside else 0, first)
