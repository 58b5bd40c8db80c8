"""Sensitivity matrices as they stand in a spec (given) or a status (measured)."""

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from synergy_api.base import ApiModel, Timestamp

_SHAPE_RULES: list[JsonValue] = [
    {
        "rule": "self.stepsPerSecond.size() == self.cpuMillis.size()",
        "message": "stepsPerSecond must have one row for each value of cpuMillis",
        "fieldPath": ".stepsPerSecond",
    },
    {
        "rule": "self.stepsPerSecond.all(row, row.size() == self.memoryBytes.size())",
        "message": "each row of stepsPerSecond must have one value for each value of memoryBytes",
        "fieldPath": ".stepsPerSecond",
    },
]
_ASCENDING: list[JsonValue] = [
    {
        "rule": "self.isSorted() && self.all(a, self.exists_one(b, b == a))",
        "message": "must ascend, each value once",
    }
]


def _ascends(axis: list[int]) -> list[int]:
    if any(right <= left for left, right in pairwise(axis)):
        raise ValueError("must ascend, each value once")
    return axis


_Axis = Annotated[
    list[Annotated[int, Field(ge=1)]],
    AfterValidator(_ascends),
    Field(min_length=1, max_length=64, json_schema_extra={"x-kubernetes-validations": _ASCENDING}),
]
_Row = Annotated[list[Annotated[float, Field(gt=0, allow_inf_nan=False)]], Field(min_length=1, max_length=64)]


class SensitivityMatrix(ApiModel):
    """Throughput of the whole job for each CPU and memory allotment on one GPU type (Synergy, section 3.1).

    `steps_per_second[i][j]` is the speed with `cpu_millis[i]` and `memory_bytes[j]` for the job with all its GPUs.
    """

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _SHAPE_RULES})

    gpu_type: Annotated[str, Field(min_length=1, max_length=63, description="GPU type the matrix was measured on.")]
    cpu_millis: Annotated[_Axis, Field(description="CPU axis in milli-CPU, ascending.")]
    memory_bytes: Annotated[_Axis, Field(description="Memory axis in bytes, ascending.")]
    steps_per_second: Annotated[
        list[_Row],
        Field(
            min_length=1,
            max_length=64,
            description="A row per CPU value, a column per memory value, in training steps per second, above zero.",
        ),
    ]

    @model_validator(mode="after")
    def _shape(self) -> "SensitivityMatrix":
        if len(self.steps_per_second) != len(self.cpu_millis):
            raise ValueError("stepsPerSecond must have one row for each value of cpuMillis")
        if any(len(row) != len(self.memory_bytes) for row in self.steps_per_second):
            raise ValueError("each row of stepsPerSecond must have one value for each value of memoryBytes")
        return self


_BY_GPU_TYPE: dict[str, JsonValue] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["gpuType"]}


def _one_of_each_type(matrices: list[SensitivityMatrix]) -> list[SensitivityMatrix]:
    types = [matrix.gpu_type for matrix in matrices]
    for gpu_type in types:
        if types.count(gpu_type) > 1:
            raise ValueError(f"there is more than one matrix for gpuType {gpu_type}")
    return matrices


MatrixList = Annotated[
    list[SensitivityMatrix], AfterValidator(_one_of_each_type), Field(json_schema_extra={**_BY_GPU_TYPE})
]
"""Matrices of one job, at most one for each GPU type."""


class DemandVector(ApiModel):
    """Smallest CPU and memory that saturate the job's throughput on one GPU type (Synergy, section 3.2)."""

    gpu_type: Annotated[str, Field(description="GPU type it holds for.")]
    gpus: Annotated[int, Field(ge=1, description="GPUs of the whole job.")]
    cpu_millis: Annotated[int, Field(ge=1, description="CPU of the whole job in milli-CPU.")]
    memory_bytes: Annotated[int, Field(ge=1, description="Memory of the whole job in bytes.")]


DemandList = Annotated[list[DemandVector], Field(json_schema_extra={**_BY_GPU_TYPE})]
"""Demand vectors of one job, at most one for each GPU type."""


class ProfilePoint(ApiModel):
    """One measured CPU point: what one profile Job found."""

    gpu_type: Annotated[str, Field(description="GPU type it was measured on.")]
    cpu_millis: Annotated[int, Field(ge=1, description="CPU limit of the run in milli-CPU.")]
    memory_bytes: Annotated[int, Field(ge=1, description="Memory limit of the run in bytes.")]
    steps_per_second: Annotated[float, Field(gt=0, description="Mean throughput in training steps per second.")]
    relative_error: Annotated[
        float, Field(ge=0, description="Standard error of the mean step rate, relative to it.")
    ] = 0.0
    max_rss_bytes: Annotated[
        int, Field(ge=0, description="Peak resident memory of the run's processes in bytes; 0 where it is not known.")
    ] = 0
    job: Annotated[str, Field(description="Name of the Kubernetes Job that measured it.")] = ""
    measured_at: Annotated[Timestamp | None, Field(description="When the run ended.")] = None


class ProfileRequest(ApiModel):
    """The place a profile series asks for: planned like a job, first in line for free GPUs."""

    gpu_type: Annotated[str, Field(description="GPU type the series measures.")]
    gpus: Annotated[int, Field(ge=1, description="GPUs the runs need.")]
    cpu_millis: Annotated[int, Field(ge=1, description="The highest CPU point of the series in milli-CPU.")]
    memory_bytes: Annotated[int, Field(ge=1, description="Memory limit of the runs in bytes.")]
