"""What profile runs measure beside a job's speed: its use of a GPU alone, what it keeps beside reference jobs on a
shared one, and what its workers send each other."""

from typing import Annotated, Literal

from pydantic import Field

from synergy_api.base import BY_GPU_TYPE, ApiModel, Timestamp
from synergy_api.parts.sharing import GPUUsage

MOST_PAIRS = 64
UsageSource = Literal["DCGM", "NVML-GPM", "Nsight", "Utilization"]
"""Source of compute and bandwidth. By Utilization they are upper bounds of the other sources' values."""


class MeasuredUsage(ApiModel):
    """What the job does to a GPU that it has alone, from its profile runs: of the fastest point, of memory the most."""

    gpu_type: Annotated[str, Field(description="GPU type it holds for.")]
    compute: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="By counters: active part of the multiprocessors' cycles. By Utilization: part of the time in "
            "which any kernel ran, an upper bound.",
        ),
    ]
    bandwidth: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="By counters: active part of the memory interface's cycles. By Utilization: part of the time "
            "in which any memory was read or written, an upper bound.",
        ),
    ]
    memory_bytes: Annotated[int, Field(ge=0, description="The most of its memory that was in use.")]
    source: Annotated[UsageSource, Field(description="Source of compute and bandwidth.")] = "Utilization"
    occupancy: Annotated[
        float | None, Field(ge=0, le=1, description="Resident warps as part of the most that fit, by counters.")
    ] = None
    utilization: Annotated[
        float | None,
        Field(ge=0, le=1, description="Beside counters: part of the time in which any kernel ran, by nvidia-smi."),
    ] = None
    memory_utilization: Annotated[
        float | None,
        Field(ge=0, le=1, description="Beside counters: part of the time in which any memory was read or written."),
    ] = None
    problem: Annotated[
        str, Field(max_length=512, description="Why there are no counters although they were wanted.")
    ] = ""


UsageList = Annotated[list[MeasuredUsage], Field(json_schema_extra={**BY_GPU_TYPE})]


class ReferencePair(ApiModel):
    """The job beside one reference job on a shared GPU, each run by a profile Job."""

    gpu_type: Annotated[str, Field(min_length=1, max_length=63, description="GPU type they shared.")]
    model: Annotated[str, Field(max_length=128, description="The reference's model.")]
    own_model: Annotated[str, Field(max_length=317, description="The job's model, or what stands for it.")] = ""
    reference: Annotated[str, Field(max_length=253, description="Name of the reference, a job of its namespace.")] = ""
    kept: Annotated[
        float | None,
        Field(ge=0, description="Throughput of the job beside the reference, as a part of its best alone."),
    ] = None
    reference_kept: Annotated[float | None, Field(ge=0, description="The same of the reference beside the job.")] = None
    usage: Annotated[GPUUsage | None, Field(description="What the reference does to a GPU alone.")] = None
    seconds: Annotated[float, Field(ge=0, description="Time in which both trained, over which speeds are taken.")] = 0.0
    gpu_seconds: Annotated[float, Field(ge=0, description="Time for which the pair had the GPU.")] = 0.0
    problem: Annotated[
        str, Field(max_length=512, description="Why nothing was measured. The pair is not tried again.")
    ] = ""
    measured_at: Annotated[Timestamp, Field(description="When the pair ended.")]


class ReferenceMatch(ApiModel):
    """Which reference the job resembles on one GPU type, by the pairs that were measured (Gavel, section 6)."""

    gpu_type: Annotated[str, Field(min_length=1, max_length=63, description="GPU type it holds for.")]
    model: Annotated[str, Field(max_length=317, description="Model of the reference that is nearest.")]
    confidence: Annotated[
        float, Field(ge=0, le=1, description="Probability that the job shares a GPU as that model does.")
    ]
    uncertainty: Annotated[
        float,
        Field(ge=0, description="Standard deviation of what the job and the references keep beside each other."),
    ]
    pairs: Annotated[int, Field(ge=1, description="References that it was measured beside.")]
    references: Annotated[int, Field(ge=1, description="References that a full measurement would have taken.")]
    gpu_seconds: Annotated[float, Field(ge=0, description="GPU time that the pairs took.")]
    saved_gpu_seconds: Annotated[
        float, Field(ge=0, description="GPU time that the other references would have taken at the same pace.")
    ]


ReferenceMatches = Annotated[list[ReferenceMatch], Field(json_schema_extra={**BY_GPU_TYPE})]
"""Matches of one job, at most one for each GPU type."""


class Traffic(ApiModel):
    """What the job's workers sent each other in its profile run, all of them on one node."""

    source: Annotated[
        Literal["Sockets", "NCCL"],
        Field(description="Sockets: the kernel's counters of TCP connections. NCCL: its log of collective calls."),
    ]
    workers: Annotated[int, Field(ge=2, description="Processes that trained together.")]
    bytes_per_step: Annotated[int, Field(ge=1, description="Sent by each worker in a step.")]
    model_bytes: Annotated[int, Field(ge=1, description="Bytes whose all-reduce in a ring sends as much.")]
    sending_seconds: Annotated[
        float | None, Field(ge=0, description="Of each step, how long a worker's connections were sending.")
    ] = None
    message_bytes: Annotated[
        int | None, Field(ge=1, description="Bytes of the buffers of all collective calls of a step, by NCCL.")
    ] = None
    largest_message_bytes: Annotated[int | None, Field(ge=1, description="The largest of these buffers.")] = None
    overlap: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Part of a step during which gradients are sent for nothing, from a run with one worker. "
            "Absent: not measured, 2/3 is assumed.",
        ),
    ] = None
