"""Sharing a GPU, in a TrainingJob: what the user allows and states, and the co-located jobs."""

from collections import Counter
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from synergy_api.base import ApiModel, PositiveQuantity, Timestamp


class GPUUsage(ApiModel):
    """Averages over the job's training alone on a GPU of one type, as NVML or DCGM measure them."""

    gpu_type: Annotated[str, Field(min_length=1, max_length=63, description="GPU type that this holds for.")]
    compute: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="Part of the time in which the GPU computes; with source Counters, active part of the "
            "multiprocessors' cycles.",
        ),
    ]
    bandwidth: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="Part of the time in which its memory is read or written; with source Counters, active part "
            "of the memory interface's cycles.",
        ),
    ]
    memory: Annotated[PositiveQuantity, Field(description="GPU memory it needs at the most, such as 3Gi.")]
    model: Annotated[
        str, Field(max_length=128, description="Name of the model that it trains: jobs of one model behave alike.")
    ] = ""
    configuration: Annotated[
        str, Field(max_length=128, description="What else describes its behaviour: data, batch size, precision.")
    ] = ""
    source: Annotated[
        Literal["Counters", "Utilization"],
        Field(description="What compute and bandwidth are. By Utilization (nvidia-smi's) they are upper bounds."),
    ] = "Utilization"
    utilization: Annotated[
        float | None,
        Field(ge=0, le=1, description="With source Counters: part of the time in which any kernel ran."),
    ] = None
    memory_utilization: Annotated[
        float | None,
        Field(ge=0, le=1, description="With source Counters: part of the time in which any memory was in use."),
    ] = None


_REFERENCE: Final = "a reference needs allowed, and a usage that names its model"
_SHARING_RULES: list[Any] = [
    {
        "rule": "!has(self.reference) || !self.reference || has(self.allowed) && self.allowed && has(self.usage) && "
        "self.usage.exists(one, has(one.model) && one.model != '')",
        "message": _REFERENCE,
        "fieldPath": ".reference",
    }
]


class Sharing(ApiModel):
    """Whether the job may share a GPU with another under MPS."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _SHARING_RULES})

    allowed: Annotated[
        bool, Field(description="The job may share its GPU. Only jobs of one GPU that may be preempted do.")
    ] = False
    across_tenants: Annotated[
        bool, Field(description="It may share with jobs of other tenants too, if these allow it as well.")
    ] = False
    reference: Annotated[
        bool,
        Field(
            description="Profile Jobs may run its command again, beside new jobs of its namespace, to measure what "
            "these keep of their speed on a shared GPU. It is done while the job exists, also if it is suspended or "
            "has ended. See profiling.referencePairs of the SchedulingPolicy."
        ),
    ] = False
    min_throughput_fraction: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="The least part that it must keep of the speed of its GPU-proportional share; by default its "
            "fair share.",
        ),
    ] = None
    usage: Annotated[
        list[GPUUsage],
        Field(
            max_length=16,
            description="What it does to a GPU alone, by GPU type; it shares GPUs of these types only.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["gpuType"]},
        ),
    ] = []

    @model_validator(mode="after")
    def _each_type_once(self) -> Self:
        """What the API server checks by the list's keys, for specs that come without it."""
        for name, times in Counter(usage.gpu_type for usage in self.usage).items():
            if times > 1:
                raise ValueError(f"usage names GPU type {name} {times} times; name each once")
        return self

    @model_validator(mode="after")
    def _reference_has_a_model(self) -> Self:
        if self.reference and not (self.allowed and any(usage.model for usage in self.usage)):
            raise ValueError(_REFERENCE)
        return self


class SharedGPU(ApiModel):
    """Who has the job's GPU too. Names are NAMESPACE/NAME."""

    asked: Annotated[list[str], Field(max_length=47, description="Jobs that the plan gives the same GPU.")] = []
    seen: Annotated[
        list[str] | None,
        Field(
            max_length=256,
            description="Jobs that were seen on it, by the GPUs' UUIDs; absent until they have reported.",
        ),
    ] = None
    wrong_runs: Annotated[
        int, Field(ge=0, description="Runs in a row, up to this one, that came to have other partners than planned.")
    ] = 0
    delta: Annotated[
        Literal["Fractions"] | None,
        Field(
            description="Fractions where colocation is thesis and the time of an iteration is not known for each job: "
            "the plan compared fractions of the speed alone instead of iteration times. Absent otherwise."
        ),
    ] = None


class SharedSpeed(ApiModel):
    """How fast the job was while certain others had its GPU too: the mean over the time in which they were seen."""

    gpu_type: Annotated[str, Field(min_length=1, max_length=63, description="GPU type they shared.")]
    partners: Annotated[
        list[str], Field(min_length=1, max_length=47, description="Jobs that had its GPU too, in order.")
    ]
    usages: Annotated[
        list[GPUUsage],
        Field(max_length=47, description="What was known of the partners' usage, in their order; empty if not of all."),
    ] = []
    fraction: Annotated[
        float, Field(ge=0, description="Measured throughput as a part of the best that the job has alone on a GPU.")
    ]
    ceiling: Annotated[
        float,
        Field(
            ge=0,
            description="Throughput that its CPU and memory would have let it have alone, as a part of the same best. "
            "Where it was as fast as that, the CPU held it up, and nothing was learnt of its partners.",
        ),
    ]
    expected: Annotated[float, Field(ge=0, description="What the plan expected as `fraction` when they came together.")]
    seconds: Annotated[float, Field(ge=0, description="Seconds that the mean is of, 600 at the most: older ones fade.")]
    updated_at: Annotated[Timestamp, Field(description="When they were last seen together.")]
