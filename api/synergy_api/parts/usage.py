"""What profile runs measure of a job's use of its GPUs."""

from typing import Annotated, Literal

from pydantic import Field

from synergy_api.base import BY_GPU_TYPE, ApiModel

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
